"""The settings of a project: its repository, editor and model, reviewers and limits, and those of other modules."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bot.jobserver.settings.agent import AgentSettings, ModelSettings
from bot.jobserver.settings.github import GitHubSettings
from bot.jobserver.settings.process import API_KEY_LENGTH, ProcessSettings, check_api_key, split_lines
from bot.jobserver.settings.sandbox import OPEN, CheckSettings, SandboxSettings
from bot.jobserver.settings.values import (
    PREFIX,
    Allowances,
    Duration,
    Identity,
    Names,
    Patterns,
    Words,
    is_branch_name,
    repository_protocol,
)
from bot.queue.engine import passwords_in
from bot.runtime.rotating_secrets import Rotating, RotatingSecret, rotating_secret, secret_text
from bot.runtime.secrets.masking import RULE_NAMES
from bot.runtime.settings import Settings

_PART = re.compile(r"(?P<name>job|day)=(?P<number>\d{1,12}(?:\.\d{1,6})?)(?P<unit>[kM]?)", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}
_SHORTEST_KEY = 22
"""Characters: nothing slows down whoever tries keys. 1.0.0 accepted 16, with which one can still read."""
_SHORTEST_TO_READ = 16
NEW_KEY = f"a new one of at least {_SHORTEST_KEY} characters (openssl rand -hex 24)"
_LONGEST_NAME = 80
_NOBODY = "nobody may merge or close pull requests, or read private ones"
_MOST_KEYS = 2


@dataclass(frozen=True)
class TokenBudget:
    """In tokens, sent and answered; None means no limit."""

    job: int | None = None
    day: int | None = None


def _budget(value: object) -> object:
    if not isinstance(value, str):
        return value
    found = [_PART.fullmatch(word) for word in value.replace(",", " ").split()]
    tokens = {part["name"]: int(float(part["number"]) * _UNITS[part["unit"]]) for part in found if part}
    if len(tokens) != len(found) or not tokens or not all(tokens.values()):
        raise ValueError("must be numbers of tokens for a job, a day, or both, such as job=2M day=20M")
    return TokenBudget(**tokens)


BudgetSetting = Annotated[TokenBudget, BeforeValidator(_budget)]


class LimitSettings(Settings):
    """Limits of changes, uploads, tokens and retention."""

    paths: Patterns = Field(
        ("**",),
        description="what a job may change, such as docs/** README.md: space-separated patterns, or a JSON list; files "
        "that run in builds, CI, editors and agents must be named literally",
    )
    allowed_secrets: Allowances = Field(
        (),
        description="where apparent secrets may be pushed: path patterns, each alone or followed by a colon and the "
        "rule that does not apply there, such as docs/samples/** docs/a.md:jwt",
    )
    max_changed_files: int = Field(
        2_000, ge=1, description="how many files one instruction may change; a larger change is rejected"
    )
    max_file_megabytes: float = Field(
        5.0,
        gt=0,
        description="the largest file that may be added or changed, in megabytes; larger ones are left out",
    )
    max_upload_megabytes: float = Field(
        10.0, gt=0, le=1000, description="the largest file that may come with a prompt, in megabytes"
    )
    upload_space_megabytes: float = Field(
        2_000.0,
        gt=0,
        description="how much space all files that came with a project's prompts may take, in megabytes",
    )
    budget: BudgetSetting = Field(
        TokenBudget(),
        description="how many tokens a job may use before its thread is asked, and all jobs in a day, such as "
        "job=2M day=20M",
    )
    keep_for: Duration = Field(
        timedelta(days=90),
        description="how long an archived job is kept; then it is deleted with its texts, log, folders and ended "
        "branches",
    )

    @property
    def unknown_rules(self) -> list[str]:
        """The rules in ALLOWED_SECRETS that do not exist, or not any more: they allow nothing."""
        return sorted({entry.partition(":")[2] for entry in self.allowed_secrets} - {"", *RULE_NAMES})


@dataclass(frozen=True)
class Reviewer:
    """A person who may merge and close pull requests."""

    name: str
    key: SecretStr

    @property
    def may_decide(self) -> bool:
        return len(self.key.get_secret_value()) >= _SHORTEST_KEY


def _parse(text: str) -> tuple[Reviewer, ...]:
    entries = [entry for entry in re.split("[\n,]", text) if entry.strip()]
    pairs = [entry.rpartition(":") for entry in entries]
    return tuple(Reviewer(" ".join(name.split()), SecretStr(key.strip())) for name, _, key in pairs)


def _reviewers(text: str) -> tuple[Reviewer, ...]:
    """Returns the reviewers in a text. Raises ValueError, which does not quote it."""
    found = _parse(text)
    names, keys = Counter(one.name for one in found), set(_keys(found))
    if not all(name.isprintable() and 0 < len(name) <= _LONGEST_NAME and ":" not in name for name in names):
        raise ValueError("must be lines such as Ada: key, each with a name without a colon")
    if not all(len(key) >= _SHORTEST_TO_READ and re.fullmatch(r"[!-~]+", key) for key in keys):
        raise ValueError(f"must be lines such as Ada: key, each with a key of at least {_SHORTEST_KEY} characters")
    if max(names.values(), default=0) > _MOST_KEYS or len(keys) < len(found):
        raise ValueError("must give each person a name and a key of their own, or two keys while one is replaced")
    return found


def _keys(reviewers: Iterable[Reviewer]) -> Iterator[str]:
    return (reviewer.key.get_secret_value() for reviewer in reviewers)


Reviewers = Rotating[tuple[Reviewer, ...]]


def reviewers_in(text: str, *, monotonic: Callable[[], float] = time.monotonic) -> Reviewers:
    """Returns the reviewers of a setting's text. Raises ValueError.

    An empty file removes the last reviewer at once: whoever empties it must not find that an old key still merges.
    """
    return Rotating(text, _reviewers, _keys, nobody=_NOBODY, monotonic=monotonic)


def _rotating_reviewers(value: object) -> Reviewers:
    return value if isinstance(value, Rotating) else reviewers_in(secret_text(value))


class PageSettings(Settings):
    """Who may merge and close on the pages of the local pull requests."""

    reviewers: Annotated[Reviewers, PlainValidator(_rotating_reviewers)] = Field(
        reviewers_in(""),
        description="who may review, merge and close on the pull request pages: a line `name: key` each, with a key of "
        f"at least {_SHORTEST_KEY} characters, best in a file; without it nobody can",
    )


def _encryption_key(key: str) -> None:
    if not re.fullmatch(r"[0-9a-f]{64}", key):
        raise ValueError("must be 64 hex digits, as openssl rand -hex 32 writes them")


def _repository(value: str) -> str:
    repository_protocol(value)
    if urlsplit(value).password is not None:
        raise ValueError("must not hold a password: use an SSH key, ~/.netrc or GIT_ASKPASS")
    return value


def _branch(value: str) -> str:
    if not is_branch_name(value):
        raise ValueError("must be the name of a branch")
    return value


def _reaches_pages(public_url: str | None, egress: object) -> bool:
    """Whether a program in the sandbox can reach the pages at the public URL; the server's own port is out of reach."""
    if egress == OPEN or public_url is None or not isinstance(egress, tuple):
        return egress == OPEN
    parts = urlsplit(public_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return any((host.name, host.port) == (parts.hostname, port) for host in egress)


class JobServerSettings(
    AgentSettings,
    ModelSettings,
    SandboxSettings,
    GitHubSettings,
    CheckSettings,
    LimitSettings,
    PageSettings,
    ProcessSettings,
):
    """All settings: those of one project, and those that it shares with the others of the server."""

    api_key: Annotated[RotatingSecret, rotating_secret(check_api_key, split=split_lines)] = Field(
        description=f"the key that clients send as a bearer token; at least {API_KEY_LENGTH} characters; while it is "
        "replaced, both keys, a line each"
    )
    project_id: str = Field("docs", min_length=1, description="the project id that clients put in the path")
    repository: Annotated[str, AfterValidator(_repository)] = Field(
        description="the git repository to work on: a directory, or an https or ssh address without a password "
        "(use an SSH key, ~/.netrc or GIT_ASKPASS)"
    )
    base_branch: Annotated[str, AfterValidator(_branch)] | None = Field(
        None, description="the branch to start from and to merge into; by default the repository's HEAD"
    )
    editor: Literal["builtin", "agent", "command"] = Field(
        "builtin",
        validate_default=True,
        description=f"builtin is the demo's, which knows four things; agent runs {PREFIX}AGENT, and is the "
        f"default where that is set; command runs {PREFIX}COMMAND",
    )
    session_key: Annotated[RotatingSecret, rotating_secret(_encryption_key)] | None = Field(
        None,
        validate_default=True,
        description="encrypts sessions and partial work in DATABASE_URL's database: 64 hex digits (openssl rand -hex "
        "32); two lines while it is replaced",
    )
    command: Words = Field(
        (),
        validate_default=True,
        description="the editor's program and arguments, as a JSON list or as words in shell quoting; "
        "the instruction comes on standard input, or in a file whose path replaces {prompt_file}",
    )
    pass_environment: Names = Field(
        (), description="names of variables that the agent or command gets besides PATH, HOME, language and the like"
    )
    model: str | None = Field(
        None,
        description="the model that a named agent uses, and that jobs show as their model; by default the agent's own, "
        "and the editor's name",
    )
    time_limit: Duration = Field(timedelta(minutes=30), description="how long one run of the agent or command may take")
    question_time_limit: Duration = Field(
        timedelta(minutes=5),
        description="how long a run waits for the answer to its question; then the job ends with the question, and a "
        "later answer continues it",
    )
    author: Identity = Field("Pagehand <pagehand@localhost>", description="author of the commits, as Name <address>")
    archive_after: Duration = Field(
        timedelta(days=30),
        description="age at which a finished job is archived and accepts no more messages",
    )
    rate_limit: int = Field(100, ge=1, description="how many jobs and messages a project may send in any hour")

    private_pages: bool | None = Field(
        None,
        description="true shows the pull request pages only to reviewers; the default if any program runs",
        validate_default=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _an_agent_is_the_editor(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {"editor": "agent", **values} if values.get("agent") else values

    @field_validator("editor")
    @classmethod
    def _has_an_agent(cls, value: str, info: ValidationInfo) -> str:
        if value == "agent" and info.data.get("agent") == ():
            raise ValueError(f"is agent, but {PREFIX}AGENT is missing")
        return value

    @field_validator("session_key")
    @classmethod
    def _others_may_continue(cls, value: RotatingSecret | None, info: ValidationInfo) -> RotatingSecret | None:
        is_shared = info.data.get("database_url") is not None
        if value is None and is_shared and info.data.get("editor", "builtin") != "builtin":
            raise ValueError("is missing: with DATABASE_URL, it encrypts agents' sessions: openssl rand -hex 32")
        return value

    @field_validator("command")
    @classmethod
    def _is_there_to_run(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.data.get("editor") == "command" and not value:
            raise ValueError("is missing")
        if any("{prompt}" in word for word in value):
            raise ValueError(
                "must not contain {prompt}, since programs take parts of a prompt for commands: leave it out to get "
                "the prompt on standard input, or write {prompt_file} where the program expects a file name"
            )
        return value

    @field_validator("private_pages")
    @classmethod
    def _somebody_can_read(cls, value: bool | None, info: ValidationInfo) -> bool:  # noqa: FBT001 - pydantic's signature
        """Programs on this machine could read public pages unless their sandbox prevents it."""
        runs_programs = info.data.get("editor", "builtin") != "builtin" or bool(info.data.get("checks"))
        is_open = info.data.get("sandbox") == "none" or _reaches_pages(
            info.data.get("public_url"), info.data.get("egress")
        )
        reviewers = info.data.get("reviewers")
        if value and reviewers is not None and not reviewers.current:
            raise ValueError("needs PAGEHAND_JOBSERVER_REVIEWERS")
        if value is False and runs_programs and is_open:
            raise ValueError("must not be false, or what an agent starts could read every draft")
        return runs_programs if value is None else value

    @property
    def rotating_secrets(self) -> tuple[Rotating[Any], ...]:
        """Every secret that can be replaced while the server runs."""
        return tuple(value for value in vars(self).values() if isinstance(value, Rotating))

    @property
    def fixed_secrets(self) -> tuple[str, ...]:
        """Every other value that no log may show, and no change may hold."""
        texts = [value.get_secret_value() for value in vars(self).values() if isinstance(value, SecretStr)]
        return (*texts, *(password for text in texts for password in passwords_in(text)))

    @property
    def runs_programs(self) -> bool:
        """Whether an agent or another program runs, in addition to the built-in editor."""
        return self.editor != "builtin" or bool(self.checks)

    @property
    def warning_about_reviewers(self) -> str:
        """What is missing for this server's own pages to be read and used; empty if nothing is."""
        if self.private_pages and self.pull_requests == "local" and not self.reviewers.current:
            return f"nobody can read the pull request pages: give each reviewer a key in {PREFIX}REVIEWERS"
        if names := ", ".join(dict.fromkeys(one.name for one in self.reviewers.current if not one.may_decide)):
            return (
                f"these reviewers cannot merge, since their keys are too short: {names}. Give each {NEW_KEY} in "
                f"{PREFIX}REVIEWERS, and remove the old one"
            )
        return ""

    @property
    def warnings(self) -> Iterator[tuple[str, str]]:
        """What the operator should know, each with the part of the setup that it is about."""
        if words := self.warning_about_reviewers:
            yield "pages", words
        if unknown := ", ".join(self.unknown_rules):
            yield "secrets", f"{PREFIX}ALLOWED_SECRETS names rules that do not exist: {unknown}"
        if self.runs_programs and self.egress == OPEN:
            words = "programs and agents can reach everything that this machine can"
            yield "egress", f"{words}: {PREFIX}EGRESS can list hosts"

    @property
    def shown_model(self) -> str:
        if self.model:
            return self.model
        program = {"agent": self.agent, "command": self.command, "builtin": ("builtin",)}[self.editor]
        return Path(program[0]).name

    @property
    def repository_address(self) -> str:
        """The repository as git gets it: an address unchanged, a directory as an absolute path."""
        if repository_protocol(self.repository) == "file" and not self.repository.startswith("file:"):
            return str(Path(self.repository).expanduser().resolve())
        return self.repository
