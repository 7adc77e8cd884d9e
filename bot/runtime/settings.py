"""A program's settings: read from an environment, all that is wrong with them told at once, secrets never shown."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bot.errors import ConfigError
from bot.runtime.private_files import warn_of_readers

_UNREADABLE = "unreadable_file"


class Settings(BaseSettings):
    """The base of a program's settings.

    In the environment a field has the name of its alias, or else `env_prefix` and its own name in capitals; its value
    can also stand in a file that `<name>_FILE` names, as container platforms provide secrets. A field's description
    ends the sentence about a fault: what the setting is, or where to get it.
    """

    model_config = SettingsConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], further: Iterable[str] = (), **given: object) -> Self:
        """Reads the settings. `further`: sentences about what else is wrong with the environment; `given`: values by
        their aliases that stand in place of what the environment has.

        Raises:
            ConfigError: something is missing or malformed, or there is anything in `further`; it has them all.
        """
        faults = list(further)
        try:
            settings = cls(**(Environment(cls, environ)() | given))
        except ValidationError as error:
            faults += map(cls._sentence, error.errors(include_input=False, include_url=False))
            raise ConfigError(sorted(set(faults))) from None
        if faults:
            raise ConfigError(faults)
        return settings

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic-settings' own
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Settings that are made by hand are what they are given: no variable of the process slips in."""
        return (init_settings,)

    @field_validator("*", mode="before")
    @classmethod
    def _could_be_read(cls, value: object) -> object:
        if isinstance(value, ConfigError):
            raise PydanticCustomError(_UNREADABLE, "{fault}", {"fault": str(value)})
        return value

    @classmethod
    def _sentence(cls, fault: ErrorDetails) -> str:
        if fault["type"] == _UNREADABLE:
            return fault["msg"]
        key = fault["loc"][0]
        name, field = next((name, field) for name, field in cls.model_fields.items() if key in {name, field.alias})
        what = "is missing" if fault["type"] == "missing" else fault["msg"].removeprefix("Value error, ")
        what = re.sub("^(Input|String) should", "must", what.partition(", unable to")[0])
        return f"{variable_name(cls, name)} {what}: {field.description}"


class Environment(PydanticBaseSettingsSource):
    """What an environment, and the files that it names, have for the fields; all of it is text."""

    def __init__(self, settings: type[Settings], environ: Mapping[str, str]) -> None:
        super().__init__(settings)
        self._environ = environ

    def __call__(self) -> dict[str, Any]:
        """Returns what is set, by the fields' keys; in the place of what cannot be read, the ConfigError about it."""
        found = (self.get_field_value(field, name) for name, field in self.settings_cls.model_fields.items())
        return {key: value for value, key, _ in found if value}

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[str | ConfigError, str, bool]:
        """Returns a field's value, its key, and that the value is no JSON."""
        key = field.alias or field_name
        try:
            return read_variable(variable_name(self.settings_cls, field_name), self._environ), key, False
        except ConfigError as error:
            return error, key, False


def variable_name(settings: type[BaseSettings], field: str) -> str:
    """What a field is called in the environment."""
    return settings.model_fields[field].alias or f"{settings.model_config.get('env_prefix', '')}{field.upper()}"


def read_variable(name: str, environ: Mapping[str, str]) -> str:
    """What a variable holds, or else the file that `<name>_FILE` names; empty where neither is set.

    Raises ConfigError where the file cannot be read.
    """
    value, file = environ.get(name, "").strip(), environ.get(f"{name}_FILE", "")
    if file and not value:
        warn_of_readers(Path(file), f"{name}_FILE")
    try:
        return value or (Path(file).read_text(encoding="utf-8").strip() if file else "")
    except OSError as error:
        raise ConfigError([f"{name}_FILE names a file that cannot be read: {error.strerror}"]) from None
    except ValueError:
        raise ConfigError([f"{name}_FILE names a file that cannot be read: it is not text"]) from None
