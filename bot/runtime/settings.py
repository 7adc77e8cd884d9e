"""Reads a program's settings from an environment. All faults are reported at once, and secrets are never shown.

A variable with the program's prefix that is none of its settings is misspelt, removed, or unknown.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bot.errors import ConfigError
from bot.runtime.private_files import warn_of_readers
from bot.runtime.rotating_secrets import FileText, Rotating, SecretFile

_UNREADABLE = "unreadable_file"
# Pydantic's own words about a size quote it.
_WORDS = {
    "missing": "is missing",
    "byte_size_unit": "must be a size",
    "byte_size": "must be a size",
    "time_delta_parsing": "must be in seconds, or like PT30M or P7D",
}


class Settings(BaseSettings):
    """The base class of a program's settings.

    A field's environment variable is its alias, or else `env_prefix` and the field's name in upper case. `<name>_FILE`
    can name a file with the value instead, which is how container platforms provide secrets. A field's description is
    the end of the message about a fault: what the setting is, or where to get it.
    """

    model_config = SettingsConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], further: Iterable[str] = (), **given: object) -> Self:
        """Reads the settings.

        Args:
            environ: The environment variables.
            further: Sentences about other faults of the environment, to be reported together with those found here.
            given: Values, by alias, that override the environment.

        Raises:
            ConfigError: A setting is missing or malformed, or `further` is not empty. It has all the faults.
        """
        faults = list(further)
        environ = {name: value for name, value in environ.items() if not is_injected(name, value)}
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
        """Takes values only from the constructor, never from the variables of the process."""
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
        what = _WORDS.get(fault["type"]) or fault["msg"].removeprefix("Value error, ")
        what = re.sub("^(Input|String) should", "must", what.partition(", unable to")[0])
        sentence = f"{variable_name(cls, name)} {what}"
        return sentence if what.endswith("\n") else f"{sentence}: {field.description}"


class Environment(PydanticBaseSettingsSource):
    """Reads the fields from an environment and from the files that it names, as text."""

    def __init__(self, settings: type[Settings], environ: Mapping[str, str]) -> None:
        super().__init__(settings)
        self._environ = environ

    def __call__(self) -> dict[str, Any]:
        """Returns the values that are set, by the fields' keys; for an unreadable file, the ConfigError about it. An
        empty file counts where it can be filled later.
        """
        values: dict[str, Any] = {}
        for name, info in self.settings_cls.model_fields.items():
            value, key, _ = self.get_field_value(info, name)
            if value or (isinstance(value, FileText) and isinstance(info.default, Rotating)):
                values[key] = value
        return values

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[str | ConfigError, str, bool]:
        """Returns a field's value, its key, and False, because the value is not JSON."""
        key = field.alias or field_name
        try:
            return read_variable(variable_name(self.settings_cls, field_name), self._environ), key, False
        except ConfigError as error:
            return error, key, False


def listed(value: object) -> object:
    """Returns what a text separates by commas; anything else as it is."""
    return tuple(name for part in value.split(",") if (name := part.strip())) if isinstance(value, str) else value


def variable_names(settings: type[BaseSettings]) -> frozenset[str]:
    """Returns the environment variables of all fields."""
    return frozenset(variable_name(settings, field) for field in settings.model_fields)


def variable_name(settings: type[BaseSettings], field: str) -> str:
    """Returns the environment variable of a field."""
    return settings.model_fields[field].alias or f"{settings.model_config.get('env_prefix', '')}{field.upper()}"


def read_variable(name: str, environ: Mapping[str, str]) -> str:
    """Returns a variable's value, or as FileText the content of the file that `<name>_FILE` names; empty if neither is
    set.

    Raises ConfigError if the file cannot be read.
    """
    value, file = environ.get(name, "").strip(), environ.get(f"{name}_FILE", "")
    if value or not file:
        return value
    return text_of_file(Path(file), f"{name}_FILE")


def text_of_file(file: Path, named_by: str) -> FileText:
    """Returns what is in the file that a setting names. Raises ConfigError if it cannot be read."""
    warn_of_readers(file, named_by)
    try:
        text = file.read_text(encoding="utf-8-sig").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError([f"{named_by} names a file that cannot be read: {why}"]) from None
    return FileText(text, SecretFile(file, named_by))


_MISSPELT = 2
"""Letters that differ from a setting's name."""
_SERVICE = re.compile(r"\w+_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)")
_SERVICE_ADDRESS = re.compile(r"(?:tcp|udp|sctp)://.*")


def is_injected(name: str, value: str) -> bool:
    """Whether Kubernetes sets a variable in each container, for a service that has the name of one of our programs."""
    return bool(_SERVICE.fullmatch(name) or (name.endswith("_PORT") and _SERVICE_ADDRESS.fullmatch(value)))


@dataclass(frozen=True)
class SettingNames:
    """The variables of one program.

    Attributes:
        known: All of them, without `_FILE`.
        prefixes: With which they begin; other variables are not judged.
        foreign: The beginning of those that belong to another program.
        removed: Names of former settings, with what to do instead.
        near: The beginning of others that are judged only if they are almost a setting, such as by a misspelt prefix.
    """

    known: Collection[str]
    prefixes: tuple[str, ...]
    foreign: str = "\0"
    removed: Mapping[str, str] = field(default_factory=dict)
    near: str = "\0"

    def misspelt(self, environ: Mapping[str, str]) -> list[str]:
        """Returns a sentence about each variable that is almost a setting."""
        return [
            f"{name} is unknown: is {meant} meant? Correct its name, or remove it"
            for name in self._unknown(environ, (*self.prefixes, self.near))
            if name not in self.removed and (meant := self._meant(name))
        ]

    def warnings(self, environ: Mapping[str, str]) -> list[str]:
        """Returns a sentence about each other variable that has no effect."""
        return [
            f"{name} has no effect. {self.removed.get(name, 'There is no such setting: remove it.')}"
            for name in self._unknown(environ, self.prefixes)
            if name in self.removed or not self._meant(name)
        ]

    def _unknown(self, environ: Mapping[str, str], prefixes: tuple[str, ...]) -> Iterator[str]:
        for name, value in sorted(environ.items()):
            is_ours = name.startswith(prefixes) and not name.startswith(self.foreign)
            if is_ours and value and not is_injected(name, value) and name.removesuffix("_FILE") not in self.known:
                yield name

    def _meant(self, name: str) -> str:
        names = (each for known in self.known for each in (known, f"{known}_FILE"))
        alike = (
            (_distance(name.lower(), each.lower()), each) for each in names if abs(len(each) - len(name)) <= _MISSPELT
        )
        distance, meant = min(alike, default=(_MISSPELT + 1, ""))
        return meant if distance <= _MISSPELT else ""


def _distance(one: str, other: str) -> int:
    """Returns how many letters have to be added, removed or replaced to turn one text into the other."""
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, start=1):
        before, row = row, [count]
        for place, each in enumerate(other):
            row.append(min(before[place + 1] + 1, row[place] + 1, before[place] + (letter != each)))
    return row[-1]
