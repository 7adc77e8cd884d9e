"""Settings: how a program that is not known by name reaches its model."""

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from bot.runtime.settings import Settings, read_variable

_KEY_FILE = "MODEL_KEY_FILE"


class ModelSettings(Settings):
    """How a program that is not known by name reaches its model: the server puts the key in."""

    model_api: Literal["anthropic", "openai", "gemini"] | None = Field(
        None,
        description="the API that a command, or an agent that is not known by name, speaks with its model: "
        "anthropic, openai or gemini",
    )
    model_url: str | None = Field(
        None, description="that API's address, such as a gateway's; by default its maker's own"
    )
    model_key: SecretStr | None = Field(None, validate_default=True, description="the key of that API")
    model_key_file: Path | None = Field(
        None, description="a file that holds the key, read anew for each request, so that it can be rotated"
    )

    @field_validator("model_url")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        parts = urlsplit(value or "https://x")
        if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query:
            raise ValueError("must be an address without a password, such as https://models.example.com/v1")
        return value

    @field_validator("model_key")
    @classmethod
    def _is_there(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if info.data.get("model_api") is not None and value is None:
            raise ValueError("is missing")
        return value

    def read_model_key(self, _: str = "") -> str:
        """Returns the key as it is now.

        Raises:
            ConfigError: its file cannot be read.
        """
        if self.model_key_file is not None:
            return read_variable("MODEL_KEY", {_KEY_FILE: str(self.model_key_file)})
        return self.model_key.get_secret_value() if self.model_key else ""
