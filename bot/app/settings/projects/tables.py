"""The tables of the projects file, with a check of each value.

Validation needs a `FileContext`: the file's directory, and the environment that can hold its keys.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from bot.app.settings.values import ChannelId
from bot.domain.projects import MOST_PROJECTS, PostMode, ReplyMode, normal_words
from bot.errors import ConfigError
from bot.jobapi.settings import ApiKey, BaseUrl, GetPath, ProjectId
from bot.runtime.private_files import warn_of_readers
from bot.runtime.rotating_secrets import FileText, RotatingSecret, SecretFile
from bot.runtime.settings import read_variable

_NAME = re.compile(r"\w[\w.-]{0,59}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_LONGEST_KEY = 10_000
"""Characters; a longer file is not a key."""


@dataclass(frozen=True)
class FileContext:
    """What a projects file refers to: files, relative to its own directory, and environment variables."""

    directory: Path
    environ: Mapping[str, str]


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("must be one word of at most 60 letters, digits, dots and hyphens, because people type it")
    return value


def _project_count(value: "tuple[ProjectTable, ...]") -> "tuple[ProjectTable, ...]":
    if not 0 < len(value) <= MOST_PROJECTS:
        raise ValueError(f"must occur at least once, and at most {MOST_PROJECTS} times")
    return value


def _phrase(value: str) -> str:
    if not normal_words(value):
        raise ValueError("must contain a letter or a digit")
    return value


def _key_in_file(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str) or not isinstance(info.context, FileContext):
        return value
    try:
        path = info.context.directory / value
        warn_of_readers(path, "key_file")
        with path.open(encoding="utf-8") as file:
            return FileText(file.read(_LONGEST_KEY).strip(), SecretFile(path, "a key_file of PAGEHAND_PROJECTS"))
    except OSError as error:
        raise ValueError(f"names a file that cannot be read: {error.strerror}") from None
    except ValueError:
        raise ValueError("names a file that cannot be read: it is not text") from None


def _key_in_variable(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str) or not isinstance(info.context, FileContext):
        return value
    if not _VARIABLE.fullmatch(value):
        raise ValueError("must be the name of an environment variable (not the key itself)")
    try:
        key = read_variable(value, info.context.environ)
    except ConfigError:
        key = ""
    if not key:
        raise ValueError("names a variable that is not set (its name is not shown, because it may be the key itself)")
    return key


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)


def _list_of(most: int) -> Any:
    return Field(default=(), strict=False, max_length=most)


class ProjectTable(_Table):
    """One `[[projects]]`. None means the JOB_API_ setting; a key field holds the key, not its file or variable."""

    name: Annotated[str, AfterValidator(_name)]
    project: Annotated[ProjectId, Field(min_length=1, max_length=200)]
    url: BaseUrl | None = None
    key_file: Annotated[ApiKey | None, BeforeValidator(_key_in_file)] = None
    key_variable: Annotated[ApiKey | None, BeforeValidator(_key_in_variable)] = None
    get_path: GetPath | None = None
    timeout: Annotated[float, Field(gt=0, le=60)] | None = None
    idempotent: bool | None = None
    requester: bool | None = None
    cancel: bool | None = None
    files: bool | None = None
    instruction: bool | None = None
    channels: Annotated[tuple[ChannelId, ...], _list_of(1_000)] = ()
    words: Annotated[tuple[Annotated[str, AfterValidator(_phrase), Field(max_length=100)], ...], _list_of(100)] = ()

    @property
    def key(self) -> RotatingSecret | None:
        """The project's own key, if it has one."""
        return self.key_file or self.key_variable


class ChannelTable(_Table):
    """One `[[channels]]`. None means the default for all channels."""

    id: ChannelId
    project: str | None = None
    replies: Annotated[ReplyMode, Field(strict=False)] | None = None
    broadcast: bool | None = None
    mention: bool | None = None
    posts: Annotated[PostMode, Field(strict=False)] | None = None


class ProjectsFile(_Table):
    """The whole file."""

    projects: Annotated[tuple[ProjectTable, ...], Field(strict=False), AfterValidator(_project_count)]
    channels: Annotated[tuple[ChannelTable, ...], _list_of(1_000)] = ()
