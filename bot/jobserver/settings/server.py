"""All settings of the job server: its address, its editor and model, and those of the other modules."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from bot.jobserver.settings.agent import AgentSettings, ModelSettings, former_agent
from bot.jobserver.settings.github import GitHubSettings
from bot.jobserver.settings.limits import LimitSettings
from bot.jobserver.settings.pages import NEW_KEY, PageSettings
from bot.jobserver.settings.sandbox import OPEN, CheckSettings, SandboxSettings
from bot.jobserver.settings.values import PREFIX, Duration, Identity, Names, Words, is_branch_name, repository_protocol
from bot.runtime.logging import LogFormat
from bot.runtime.rotating_secrets import Rotating, RotatingSecret, rotating_secret

SHORTEST_KEY = 16


def _api_key(key: str) -> None:
    if len(key) < SHORTEST_KEY or not key.isprintable():
        raise ValueError(f"must be one line of at least {SHORTEST_KEY} characters")


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.split("\n")) if line]


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


def _reaches_pages(public_url: str | None, egress: object) -> bool:
    """Whether a program in the sandbox can reach the pages at the public URL; the server's own port is out of reach."""
    if egress == OPEN or public_url is None or not isinstance(egress, tuple):
        return egress == OPEN
    parts = urlsplit(public_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return any((host.name, host.port) == (parts.hostname, port) for host in egress)


class JobServerSettings(
    AgentSettings, ModelSettings, SandboxSettings, GitHubSettings, CheckSettings, LimitSettings, PageSettings
):
    """All settings of a job server."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)

    host: str = Field(
        "127.0.0.1",
        description="the address to listen on; anything but this machine needs an https proxy in front",
    )
    port: int = Field(8765, ge=0, le=65535, description="the port to listen on; 0 picks a free one")
    public_url: Annotated[str, AfterValidator(_web_address)] | None = Field(
        None,
        description="the address under which people reach the pull request pages, for links; by default http://host:port",
    )
    host_names: Names = Field(
        (),
        description="comma-separated names, besides those of the address and of PUBLIC_URL, by which clients call this "
        "server; requests for any other name are refused",
    )
    api_key: Annotated[RotatingSecret, rotating_secret(_api_key, split=_lines)] = Field(
        description=f"the key that clients send as a bearer token; at least {SHORTEST_KEY} characters; while it is "
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
    data_directory: Path = Field(
        Path("pagehand-jobserver"), description="where jobs, logs, clones and local pull requests are kept"
    )
    editor: Literal["builtin", "agent", "command"] = Field(
        "builtin",
        validate_default=True,
        description=f"builtin is the demo's, which knows four things; agent runs {PREFIX}AGENT, and is the "
        f"default where that is set; command runs {PREFIX}COMMAND",
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
    time_limit: Duration = Field(
        timedelta(minutes=30), description="how long one run of the agent or command may take (seconds or ISO 8601)"
    )
    question_time_limit: Duration = Field(
        timedelta(minutes=5),
        description="how long a run waits for the answer to its question; then the job ends with the question, and a "
        "later answer continues it (seconds or ISO 8601)",
    )
    author: Identity = Field("Pagehand <pagehand@localhost>", description="author of the commits, as Name <address>")
    committer: Identity | None = Field(None, description="committer; by default the author")
    archive_after: Duration = Field(
        timedelta(days=30),
        description="age at which a finished job is archived and accepts no more messages (seconds or ISO 8601)",
    )
    metrics_token: Annotated[RotatingSecret, rotating_secret(_api_key, split=_lines)] | None = Field(
        None, description="the bearer token that GET /metrics requires; without one, there are no metrics"
    )
    log_format: LogFormat | None = Field(
        None,
        description="text is for people, json has one object a line; by default text on a terminal, json elsewhere",
    )
    rate_limit: int = Field(100, ge=1, description="how many jobs and messages a project may send in any hour")
    max_prompt_characters: int = Field(250_000, ge=1, description="the longest accepted prompt, with its context")
    max_concurrent_jobs: int = Field(2, ge=1, le=64, description="how many jobs are worked on at once")

    private_pages: bool | None = Field(
        None,
        description="true shows the pull request pages only to reviewers; the default if an agent or another program "
        "runs",
        validate_default=True,
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], further: Iterable[str] = (), **given: object) -> Self:
        """Reads the settings, as `Settings` does, and says what replaces agents that were known by name before."""
        return super().from_environment(environ, [*further, *former_agent(environ, given.get("agent"))], **given)

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
        given = (self.api_key, self.reviewers, self.metrics_token)
        return tuple(secret for secret in given if secret is not None)

    @property
    def runs_programs(self) -> bool:
        """Whether an agent or another program runs, in addition to the built-in editor."""
        return self.editor != "builtin" or bool(self.checks)

    @property
    def warning_about_reviewers(self) -> str:
        """What is missing for this server's own pages to be read and used; empty if nothing is."""
        if self.private_pages and self.pull_requests == "local" and not self.reviewer_list:
            return f"nobody can read the pull request pages: give each reviewer a key in {PREFIX}REVIEWERS"
        if names := ", ".join(dict.fromkeys(one.name for one in self.reviewer_list if not one.may_decide)):
            return (
                f"these reviewers cannot merge, since their keys are too short: {names}. Give each {NEW_KEY} in "
                f"{PREFIX}REVIEWERS, and remove the old one"
            )
        return ""

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
