"""Settings: which agent it is, and how it is run."""

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from bot.jobserver.settings.values import Words
from bot.runtime.settings import Settings, read_variable

_KEY_FILE = "MODEL_KEY_FILE"


class AgentSettings(Settings):
    """Which agent it is, and how it is run."""

    agent: Words = Field(
        (),
        description="the coding agent that edits: claude, codex, gemini, opencode or goose, or the command of any "
        "program that speaks the Agent Client Protocol, as a JSON list or as words in shell quoting",
    )
    agent_home: Path | None = Field(
        None,
        description="a folder whose files each job's HOME begins with: an agent's configuration, or its login where "
        "that is a file",
    )
    effort: str | None = Field(
        None,
        description="how much the agent's model thinks, such as low or high: one of those that the agent lists, which "
        "--check tells; by default the agent's own",
    )
    permissions: Literal["no", "ask"] = Field(
        "no",
        description="what an agent is told when it asks for more than to read and change files of the copy: "
        "no, or no until whoever asked has answered yes",
    )

    @field_validator("agent_home")
    @classmethod
    def _is_a_folder(cls, value: Path | None) -> Path | None:
        folder = value.expanduser() if value else None
        if folder and not folder.is_dir():
            raise ValueError("must name a folder")
        return folder


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
