"""The projects and their job APIs: from the projects file, or from variables, which are also the defaults for that.

Validation of the file's tables needs a `FileContext`: its directory, and the environment that can hold its keys.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails

from bot.app.settings.code_hosts import GITHUB, CodeHostSettings, CodeHostVariables
from bot.app.settings.values import ChannelId
from bot.codehosts.github_webhook import Senders
from bot.domain.projects import (
    MOST_PROJECTS,
    ChannelSettings,
    JobApiAbilities,
    PostMode,
    Project,
    Projects,
    ReplyMode,
    normal_words,
)
from bot.errors import ConfigError
from bot.jobapi.models import Mode
from bot.jobapi.settings import GET_PATH, ApiKey, BaseUrl, GetPath, JobApiSettings, ProjectId
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.settings import read_variable, text_of_file
from bot.runtime.toml_file import content_of, tables_in
from bot.runtime.untrusted_json import objects_at, text_at

_NAME = re.compile(r"\w[\w.-]{0,59}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_KEY_FILE = "a key_file of PAGEHAND_PROJECTS"


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
        return text_of_file(info.context.directory / value, _KEY_FILE)
    except ConfigError as error:
        raise ValueError(str(error).removeprefix(f"{_KEY_FILE} ")) from None


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
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


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
    pull_request: bool | None = None
    pictures: bool | None = None
    modes: bool | None = None
    mode: Annotated[Mode, Field(strict=False)] | None = None
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
    mode: Annotated[Mode, Field(strict=False)] | None = None


class CodeHostTable(_Table):
    """One `[[code_hosts]]`. A token field holds the token, not its file or variable."""

    kind: Literal["github"] = "github"
    url: BaseUrl = GITHUB
    token_file: Annotated[ApiKey | None, BeforeValidator(_key_in_file)] = None
    token_variable: Annotated[ApiKey | None, BeforeValidator(_key_in_variable)] = None
    webhook_secret_file: Annotated[ApiKey | None, BeforeValidator(_key_in_file)] = None
    webhook_secret_variable: Annotated[ApiKey | None, BeforeValidator(_key_in_variable)] = None
    previews: Annotated[tuple[str, ...], _list_of(100)] = ()


class ProjectsFile(_Table):
    """The whole file."""

    projects: Annotated[tuple[ProjectTable, ...], Field(strict=False), AfterValidator(_project_count)]
    code_hosts: Annotated[tuple[CodeHostTable, ...], _list_of(100)] = ()
    channels: Annotated[tuple[ChannelTable, ...], _list_of(1_000)] = ()


VARIABLE = "PAGEHAND_PROJECTS"
_WORDS = {
    "missing": "is missing",
    "string_type": "must be text, in quotes",
    "tuple_type": "must be a list, in [ ]",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "too_long": "has too many entries",
    "secret_type": "must be text, in quotes",
}
_TABLES: dict[str, type[BaseModel]] = {
    "projects": ProjectTable,
    "channels": ChannelTable,
    "code_hosts": CodeHostTable,
}
_PLAIN = re.compile("[A-Za-z_-]{1,30}")


def read_projects(environ: Mapping[str, str]) -> ProjectsFile | None:
    """Reads the file that PAGEHAND_PROJECTS names; None if it names none. Raises ConfigError."""
    named = read_variable(VARIABLE, environ)
    if not named:
        return None
    path = Path(named)
    data, found = _parsed(path), None
    try:
        found = ProjectsFile.model_validate(data, context=FileContext(path.parent, environ))
        faults = list(_conflicts(found, environ))
    except ValidationError as error:
        faults = [_sentence(fault) for fault in error.errors(include_input=False, include_url=False)]
    if faults:
        raise ConfigError([f"{VARIABLE}: {fault}" for fault in dict.fromkeys(faults)])
    return found


def key_variables(environ: Mapping[str, str]) -> frozenset[str]:
    """Returns the variables that the file names for the projects' keys; none if it cannot be read."""
    try:
        named = read_variable(VARIABLE, environ)
        data = _parsed(Path(named)) if named else {}
    except ConfigError:
        return frozenset()
    of_hosts = ("token_variable", "webhook_secret_variable")
    named_there = (("projects", "key_variable"), *(("code_hosts", name) for name in of_hosts))
    return frozenset(text_at(table, name) for tables, name in named_there for table in objects_at(data, tables))


def _conflicts(file: ProjectsFile, environ: Mapping[str, str]) -> Iterator[str]:
    """Yields a sentence for each pair of entries that contradict each other, and for each missing URL or key."""
    projects, channels = list(enumerate(file.projects, start=1)), list(enumerate(file.channels, start=1))
    numbers = {table.name.casefold(): number for number, table in projects}
    assigned = [(number, channel) for number, table in projects for channel in table.channels]
    for number, table in projects:
        yield from (f"project {number}: {fault}" for fault in _incomplete(table, environ))
    for number, channel in channels:
        if channel.project is not None:
            project = numbers.get(channel.project.casefold())
            if project is None:
                yield f"channel {number}, project: no project has this name"
            else:
                assigned.append((project, channel.id))
    yield from _repeated("name", ((number, table.name.casefold()) for number, table in projects))
    addresses = ((number, f"{table.url} {table.project}") for number, table in projects)
    yield from _repeated("project (at the same url)", addresses)
    yield from _repeated("word", ((number, normal_words(word)) for number, table in projects for word in table.words))
    yield from _repeated("id", ((number, channel.id) for number, channel in channels), table="channel")
    yield from _repeated("channel", assigned)
    hosts = list(enumerate(file.code_hosts, start=1))
    yield from _repeated("url", ((number, host.url) for number, host in hosts), table="code_host")
    for number, host in hosts:
        if (host.token_file is None) == (host.token_variable is None):
            yield f"code_host {number}: it needs either token_file or token_variable"
        if host.webhook_secret_file and host.webhook_secret_variable:
            yield f"code_host {number}: it has both webhook_secret_file and webhook_secret_variable: remove one of them"


def _incomplete(table: ProjectTable, environ: Mapping[str, str]) -> Iterator[str]:
    if table.key_file and table.key_variable:
        yield "it has both key_file and key_variable: remove one of them"
    url = _given("JOB_API_URL", environ)
    if table.url is None and not url:
        yield "it has no url, and JOB_API_URL is not set"
    if table.key:
        return
    if table.url is not None and table.url != url.rstrip("/"):
        yield "it has a url of its own, so it needs key_file or key_variable: JOB_API_KEY is not sent elsewhere"
    elif not _given("JOB_API_KEY", environ):
        yield "it has neither key_file nor key_variable, and JOB_API_KEY is not set"


def _given(name: str, environ: Mapping[str, str]) -> str:
    """Returns a variable's value. An unreadable file counts as set, because loading the settings reports it."""
    try:
        return read_variable(name, environ)
    except ConfigError:
        return "unreadable"


def _repeated(what: str, found: Iterable[tuple[int, str]], *, table: str = "project") -> Iterator[str]:
    first: dict[str, int] = {}
    for number, value in found:
        if first.setdefault(value, number) != number:
            yield f"{table}s {first[value]} and {number} have the same {what}"


def _parsed(path: Path) -> dict[str, Any]:
    return tables_in(content_of(path, VARIABLE), VARIABLE)


def _sentence(fault: ErrorDetails) -> str:
    place = list(fault["loc"])
    if fault["type"] == "extra_forbidden":
        name, around = str(place[-1]), place[:-1]
        entry = f"an entry {name} that" if _PLAIN.fullmatch(name) else "an entry that"
        return f"{_place(around)}it has {entry} is unknown; the known ones are {_known(around)}"
    what = _WORDS.get(fault["type"]) or fault["msg"].removeprefix("Value error, ")
    return _place(place) + re.sub("^(Input|String|Tuple|Value) should", "must", what)


def _known(place: list[int | str]) -> str:
    table = _TABLES.get(str(place[0])) if place else None
    return ", ".join(table.model_fields) if table else ", ".join(f"[[{name}]]" for name in _TABLES)


def _place(place: list[int | str]) -> str:
    """Returns the place of a fault in the file, such as `project 2, words, entry 3: `."""
    match place:
        case [str() as table, int() as index, *rest]:
            inside = (f"entry {part + 1}" if isinstance(part, int) else part for part in rest)
            return ", ".join([f"{table.removesuffix('s')} {index + 1}", *inside]) + ": "
        case [str() as table]:
            return f"[[{table}]]: "
        case _:
            return ""


@dataclass(frozen=True)
class ProjectSettings:
    """A project and its job API. `id` is the project's id there."""

    project: Project
    id: str
    job_api: JobApiSettings


class JobApiVariables(CodeHostVariables):
    """The settings about projects, their job APIs, and their code hosts."""

    projects_file: ProjectsFile | None = Field(
        default=None,
        alias="PAGEHAND_PROJECTS",
        description="the path of a TOML file that lists several projects",
    )
    job_api_url: BaseUrl | None = Field(
        default=None,
        validate_default=True,
        alias="JOB_API_URL",
        description="the base URL of the job API, without /v2: ask whoever runs it",
    )
    job_api_key: ApiKey | None = Field(
        default=None,
        validate_default=True,
        alias="JOB_API_KEY",
        description="an admin API key, from the API keys page of the project owner's dashboard",
    )
    job_api_project: ProjectId | None = Field(
        default=None,
        validate_default=True,
        alias="JOB_API_PROJECT",
        min_length=1,
        description="the id of the documentation project that jobs work on",
    )
    job_api_get_path: GetPath = Field(
        default=GET_PATH, alias="JOB_API_GET_PATH", description="the path that reads a job"
    )
    job_api_timeout: float = Field(
        default=20.0, gt=0, le=60, alias="JOB_API_TIMEOUT", description="seconds that one call may take in total"
    )
    job_api_idempotent: bool = Field(
        default=False,
        alias="JOB_API_IDEMPOTENT",
        description="true if the job API runs a repeated Idempotency-Key only once: "
        "then a request that may have arrived is sent again without asking",
    )
    job_api_requester: bool = Field(
        default=False,
        alias="JOB_API_REQUESTER",
        description="true if the job API accepts who asked: the person's name, their Slack user id and a link to the "
        "thread, for the pull request",
    )
    job_api_cancel: bool = Field(
        default=False,
        alias="JOB_API_CANCEL",
        description="true if the job API can cancel a job; otherwise a stop is a message to the agent",
    )
    job_api_files: bool = Field(
        default=False,
        alias="JOB_API_FILES",
        description="true if the job API accepts files; otherwise the agent gets links",
    )
    job_api_instruction: bool = Field(
        default=False,
        alias="JOB_API_INSTRUCTION",
        description="true if the job API accepts which part of a prompt is the person's own words",
    )
    job_api_pull_request: bool = Field(
        default=False,
        alias="JOB_API_PULL_REQUEST",
        description="true if the job API reports a job's pull request with its checks and reviews: then the bot needs "
        "no token of the code host",
    )
    job_api_pictures: bool = Field(
        default=False,
        alias="JOB_API_PICTURES",
        description="true if the job API sends the pictures of a job's pages, and they are to come into the thread",
    )
    job_api_modes: bool = Field(
        default=False,
        alias="JOB_API_MODES",
        description="true if the job API can show a plan first, or only answer, and lets people choose a model",
    )
    replies: ReplyMode = Field(
        default=ReplyMode.EVERYONE,
        alias="PAGEHAND_REPLIES",
        description="whose replies in a job's thread are sent: everyone, participants, or mentions (only these)",
    )
    mode: Mode = Field(
        default=Mode.EDIT,
        alias="PAGEHAND_MODE",
        description="what a job does that does not say: edit, plan (show a plan first), or ask (only answer)",
    )

    @field_validator("job_api_url", "job_api_key", "job_api_project")
    @classmethod
    def _needed_without_a_file(cls, value: object, info: ValidationInfo) -> object:
        if value is None and info.data.get("projects_file", "unreadable") is None:
            raise ValueError("is missing")
        return value

    @cached_property
    def projects(self) -> tuple[ProjectSettings, ...]:
        """Every project with its job API."""
        if self.projects_file is None:
            name = self.job_api_project or ""
            return (self._project(ProjectTable.model_construct(name=name, project=name)),)
        return tuple(map(self._project, self.projects_file.projects))

    @property
    def code_hosts(self) -> tuple[CodeHostSettings, ...]:
        """Every code host that has a token."""
        listed = self._listed_code_hosts()
        return tuple(CodeHostSettings(url, token, previews) for url, token, _, previews in listed if token)

    @property
    def webhook_senders(self) -> Senders:
        """Every code host whose webhooks are taken."""
        return [(url, secret) for url, _, secret, _ in self._listed_code_hosts() if secret]

    def _listed_code_hosts(self) -> Iterator[tuple[str, RotatingSecret | None, RotatingSecret | None, tuple[str, ...]]]:
        for table in self.projects_file.code_hosts if self.projects_file else ():
            secret = table.webhook_secret_file or table.webhook_secret_variable
            yield table.url, table.token_file or table.token_variable, secret, table.previews
        yield self.code_host_url, self.code_host_token, self.code_host_webhook_secret, self.code_host_previews

    @cached_property
    def known_projects(self) -> Projects:
        """The projects that a request can be for, and the settings of channels."""
        tables = self.projects_file.channels if self.projects_file else ()
        return Projects(
            all=tuple(each.project for each in self.projects),
            channels={table.id: self._channel(table) for table in tables},
            any_channel=ChannelSettings(replies=self.replies),
        )

    def _project(self, table: ProjectTable) -> ProjectSettings:
        job_api = JobApiSettings(
            base_url=table.url or self.job_api_url or "",
            api_key=table.key or self.job_api_key or RotatingSecret(""),
            get_path=table.get_path or self.job_api_get_path,
            timeout=table.timeout or self.job_api_timeout,
            pictures=self._abilities(table).pictures,
        )
        channels = self.projects_file.channels if self.projects_file else ()
        assigned = (each.id for each in channels if (each.project or "").casefold() == table.name.casefold())
        channels_of_it = frozenset({*table.channels, *assigned})
        abilities, mode = self._abilities(table), table.mode or self.mode
        project = Project(table.name, channels_of_it, table.words, abilities, table.project, mode)
        return ProjectSettings(project, table.project, job_api)

    def _abilities(self, table: ProjectTable) -> JobApiAbilities:
        given = {each.name: getattr(table, each.name) for each in fields(JobApiAbilities)}
        defaults = {name: getattr(self, f"job_api_{name}") for name, value in given.items() if value is None}
        return JobApiAbilities(**given | defaults)

    def _channel(self, table: ChannelTable) -> ChannelSettings:
        given = table.model_dump(exclude={"id", "project"}, exclude_none=True)
        return replace(ChannelSettings(replies=self.replies), **given)
