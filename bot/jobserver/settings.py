"""Every setting of the job server, read from PAGEHAND_JOBSERVER_... variables."""

import json
import re
import shlex
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import SettingsConfigDict

from bot.runtime.settings import Settings

PREFIX = "PAGEHAND_JOBSERVER_"
SHORTEST_KEY = 16
_PROTOCOLS = {"file": "file", "http": "http", "https": "https", "ssh": "ssh", "git+ssh": "ssh"}
_SCP_LIKE = re.compile(r"^(?:[\w.-]+@)?[\w.-]+:(?!/?/)[^:]", re.ASCII)
_IDENTITY = re.compile(r"^[^<>\n\0]*[^<>\n\0\s][^<>\n\0]*<[^<>\s\0]+>\Z")
_BRANCH = re.compile(r"^(?!-)(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+\Z")


def is_branch_name(name: str) -> bool:
    """Whether git would take it as a branch, and never as an option or a revision expression."""
    return bool(_BRANCH.match(name)) and name != "@" and not name.startswith(("/", "."))


def _words(value: object) -> object:
    """A JSON list, or words as a shell would split them; split once, here, and never seen by a shell."""
    if not isinstance(value, str):
        return value
    try:
        words = json.loads(value) if value.lstrip().startswith("[") else shlex.split(value)
    except ValueError:
        words = [None]
    if not all(isinstance(word, str) for word in words):
        raise ValueError("must be a JSON list of words, or words in shell quoting")
    return words


def _names(value: object) -> object:
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _identity(value: str) -> str:
    if not _IDENTITY.match(value):
        raise ValueError("must look like Name <address@example.com>")
    return value


def _seconds(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}(?:\.\d+)?", value):
        return float(value)
    return value


def _positive(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise ValueError("must be more than nothing")
    return value


def _api_key(value: SecretStr) -> SecretStr:
    key = value.get_secret_value()
    if len(key) < SHORTEST_KEY or not key.isprintable():
        raise ValueError(f"must be one line of at least {SHORTEST_KEY} characters")
    return value


def _web_address(value: str) -> str:
    parts = urlsplit(value)
    has_more = parts.path not in {"", "/"} or parts.query or parts.fragment
    if parts.scheme not in {"http", "https"} or not parts.hostname or has_more:
        raise ValueError("must be an address without a path, such as https://docs-jobs.example.com")
    return value.rstrip("/")


def _repository(value: str) -> str:
    repository_protocol(value)
    if urlsplit(value).password is not None:
        raise ValueError("must not hold a password: use an SSH key, ~/.netrc or GIT_ASKPASS")
    return value


def _branch(value: str) -> str:
    if not is_branch_name(value):
        raise ValueError("must be the name of a branch")
    return value


Duration = Annotated[timedelta, BeforeValidator(_seconds), AfterValidator(_positive)]
Identity = Annotated[str, AfterValidator(_identity)]


class JobServerSettings(Settings):
    """How this job server is reached, what it works on, and with which editor."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)

    host: str = Field(
        "127.0.0.1",
        description="the address to listen on; the pull request pages have no login: put a proxy that has one "
        "in front before listening on anything but this machine",
    )
    port: int = Field(8765, ge=0, le=65535, description="the port to listen on; 0 takes a free one")
    public_url: Annotated[str, AfterValidator(_web_address)] | None = Field(
        None,
        description="the address under which people reach the pull request pages, for links; by default http://host:port",
    )
    api_key: Annotated[SecretStr, AfterValidator(_api_key)] = Field(
        description=f"the key that clients send as a bearer token; at least {SHORTEST_KEY} characters"
    )
    project_id: str = Field("docs", min_length=1, description="the project id that clients put in the path")
    repository: Annotated[str, AfterValidator(_repository)] = Field(
        description="the git repository to work on: a directory, or an https or ssh address without a password "
        "(use an SSH key, ~/.netrc or GIT_ASKPASS)"
    )
    base_branch: Annotated[str, AfterValidator(_branch)] | None = Field(
        None, description="the branch to start from and to merge into; by default the repository's HEAD"
    )
    data_directory: Path = Field(
        Path("pagehand-jobserver"), description="where jobs, logs, clones and local pull requests are kept"
    )
    editor: Literal["builtin", "command"] = Field(
        "builtin",
        description=f"builtin replaces text, fixes spelling and adds pages; command runs {PREFIX}COMMAND",
    )
    command: Annotated[tuple[str, ...], BeforeValidator(_words)] = Field(
        (),
        validate_default=True,
        description="the editor's program and arguments, as a JSON list or as words in shell quoting; "
        "{prompt} stands for the instruction, without it the instruction comes on standard input",
    )
    pass_environment: Annotated[tuple[str, ...], BeforeValidator(_names)] = Field(
        (), description="names of variables that the command gets besides PATH, HOME, language and the like"
    )
    model: str | None = Field(
        None, description="what jobs show as their model; by default builtin, or the command's program"
    )
    time_limit: Duration = Field(
        timedelta(minutes=30), description="how long one run of the command may take (seconds or ISO 8601)"
    )
    author: Identity = Field("Pagehand <pagehand@localhost>", description="author of the commits, as Name <address>")
    committer: Identity | None = Field(None, description="committer; by default the author")
    archive_after: Duration = Field(
        timedelta(days=30),
        description="age at which a finished job is archived and takes no more messages (seconds or ISO 8601)",
    )
    rate_limit: int = Field(100, ge=1, description="how many jobs and messages a project may send in any hour")
    max_prompt_characters: int = Field(50_000, ge=1, description="the longest prompt taken; longer ones get 413")
    max_concurrent_jobs: int = Field(2, ge=1, le=64, description="how many jobs are worked on at once")

    @field_validator("command")
    @classmethod
    def _is_there_to_run(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.data.get("editor") == "command" and not value:
            raise ValueError("is missing")
        return value

    @property
    def shown_model(self) -> str:
        if self.model:
            return self.model
        return Path(self.command[0]).name if self.editor == "command" else "builtin"

    @property
    def repository_address(self) -> str:
        """What git is given: an address as it is, a directory as an absolute path."""
        if repository_protocol(self.repository) == "file" and not self.repository.startswith("file:"):
            return str(Path(self.repository).expanduser().resolve())
        return self.repository


def repository_protocol(repository: str) -> str:
    """The one protocol git may speak for this repository, as GIT_ALLOW_PROTOCOL names it.

    Raises:
        ValueError: for option-like text and for transports that run programs, such as ext::.
    """
    if not repository or repository.startswith("-") or any(ord(c) < ord(" ") for c in repository):
        raise ValueError("must be a directory or an address")
    scheme, separator, _ = repository.partition("://")
    if separator:
        if scheme.lower() not in _PROTOCOLS:
            raise ValueError("must be a directory, or a file, http, https or ssh address")
        return _PROTOCOLS[scheme.lower()]
    if "::" in repository.split("/", 1)[0]:
        raise ValueError("must not name a remote helper such as ext::")
    return "ssh" if _SCP_LIKE.match(repository) else "file"
