"""Every setting of the job server, read from PAGEHAND_JOBSERVER_... variables."""

import json
import re
import shlex
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "PAGEHAND_JOBSERVER_"
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
    if value.lstrip().startswith("["):
        return json.loads(value)
    return shlex.split(value)


def _names(value: object) -> object:
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _identity(value: str) -> str:
    if not _IDENTITY.match(value):
        raise ValueError("write it as: Name <address@example.com>")
    return value


def _seconds(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}(?:\.\d+)?", value):
        return float(value)
    return value


Duration = Annotated[timedelta, BeforeValidator(_seconds)]
Identity = Annotated[str, AfterValidator(_identity)]


class JobServerSettings(BaseSettings):
    """How this job server is reached, what it works on, and with which editor."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="ignore", env_ignore_empty=True, hide_input_in_errors=True
    )

    host: str = Field(
        "127.0.0.1",
        description="Address to listen on. The pull request pages have no login: put a proxy that has one "
        "in front before listening on anything but this machine.",
    )
    port: int = Field(8765, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    public_url: str | None = Field(
        None,
        description="Address under which people reach the pull request pages, for links; by default http://host:port.",
    )
    api_key: SecretStr = Field(
        SecretStr(""), description="The key that clients send as a bearer token; at least 16 characters."
    )
    api_key_file: Path | None = Field(None, description="A file that holds the key, instead of api_key.")
    project_id: str = Field("docs", min_length=1, description="The project id that clients put in the path.")
    repository: str = Field(
        description="The git repository to work on: a directory or an https or ssh address without a password "
        "(use an SSH key, ~/.netrc or GIT_ASKPASS)."
    )
    base_branch: str | None = Field(
        None, description="Branch to start from and to merge into; by default the repository's HEAD."
    )
    data_directory: Path = Field(
        Path("pagehand-jobserver"), description="Where jobs, logs, clones and local pull requests are kept."
    )
    editor: Literal["builtin", "command"] = Field(
        "builtin", description="builtin: replaces text, fixes spelling, adds pages; command: runs `command`."
    )
    command: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)] = Field(
        (),
        description="The editor's program and arguments, as a JSON list or as words in shell quoting. "
        "{prompt} stands for the instruction; without it the instruction comes on standard input.",
    )
    pass_environment: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = Field(
        (), description="Names of variables that the command gets besides PATH, HOME, language and the like."
    )
    model: str | None = Field(
        None, description="What jobs show as their model; by default builtin, or the command's program."
    )
    time_limit: Duration = Field(
        timedelta(minutes=30), description="How long one run of the command may take (seconds or ISO 8601)."
    )
    author: Identity = Field("Pagehand <pagehand@localhost>", description="Author of the commits, as Name <address>.")
    committer: Identity | None = Field(None, description="Committer; by default the author.")
    archive_after: Duration = Field(
        timedelta(days=30),
        description="Age at which a finished job is archived and takes no more messages (seconds or ISO 8601).",
    )
    rate_limit: int = Field(100, ge=1, description="How many jobs and messages a project may send in any hour.")
    max_prompt_characters: int = Field(50_000, ge=1, description="Longest prompt taken; longer ones get 413.")
    max_concurrent_jobs: int = Field(2, ge=1, le=64, description="How many jobs are worked on at once.")

    @field_validator("public_url")
    @classmethod
    def _is_web_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        has_more = parts.path not in {"", "/"} or parts.query or parts.fragment
        if parts.scheme not in {"http", "https"} or not parts.hostname or has_more:
            raise ValueError("give an address without a path, such as https://docs-jobs.example.com")
        return value.rstrip("/")

    @field_validator("repository")
    @classmethod
    def _is_safe_repository(cls, value: str) -> str:
        repository_protocol(value)
        if urlsplit(value).password is not None:
            raise ValueError("leave the password out of the address: use an SSH key, ~/.netrc or GIT_ASKPASS")
        return value

    @field_validator("base_branch")
    @classmethod
    def _is_branch(cls, value: str | None) -> str | None:
        if value is not None and not is_branch_name(value):
            raise ValueError("this is not a branch name")
        return value

    @field_validator("time_limit", "archive_after")
    @classmethod
    def _is_positive(cls, value: timedelta) -> timedelta:
        if value <= timedelta(0):
            raise ValueError("must be more than nothing")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.api_key_file is not None and not self.api_key.get_secret_value():
            self.api_key = SecretStr(_first_line(self.api_key_file))
        if len(self.api_key.get_secret_value()) < 16:  # noqa: PLR2004 (told in the message)
            raise ValueError(f"set {PREFIX}API_KEY (or ..._API_KEY_FILE) to a key of at least 16 characters")
        if self.editor == "command" and not self.command:
            raise ValueError(f"set {PREFIX}COMMAND to the program that edits")
        return self

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
        raise ValueError("give a directory or an address")
    scheme, separator, _ = repository.partition("://")
    if separator:
        if scheme.lower() not in _PROTOCOLS:
            raise ValueError("only file, http, https and ssh addresses are supported")
        return _PROTOCOLS[scheme.lower()]
    if "::" in repository.split("/", 1)[0]:
        raise ValueError("remote helpers such as ext:: are not supported")
    return "ssh" if _SCP_LIKE.match(repository) else "file"


def _first_line(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the key file {path} cannot be read") from error
    return lines[0].strip() if lines else ""
