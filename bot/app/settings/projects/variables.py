"""The job APIs from the environment: the only project, or the defaults for those of the projects file."""

from dataclasses import dataclass, fields, replace

from pydantic import Field, ValidationInfo, field_validator

from bot.app.settings.projects.tables import ChannelTable, ProjectsFile, ProjectTable
from bot.domain.projects import ChannelSettings, JobApiAbilities, Project, Projects, ReplyMode
from bot.jobapi.settings import GET_PATH, ApiKey, BaseUrl, GetPath, JobApiSettings, ProjectId
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.settings import Settings


@dataclass(frozen=True)
class ProjectSettings:
    """A project and its job API. `id` is the project's id there."""

    project: Project
    id: str
    job_api: JobApiSettings


class JobApiVariables(Settings):
    """The settings about projects and their job APIs."""

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
        description="true if the job API runs a repeated Idempotency-Key only once (Pagehand's job server does): "
        "then a request that may have arrived is sent again without asking",
    )
    job_api_requester: bool = Field(
        default=False,
        alias="JOB_API_REQUESTER",
        description="true if the job API accepts who asked (Pagehand's job server does): then each request carries "
        "the person's name, their Slack user id and a link to the thread, for the pull request",
    )
    job_api_cancel: bool = Field(
        default=False,
        alias="JOB_API_CANCEL",
        description="true if the job API can cancel a job (Pagehand's job server can); otherwise a stop is a message "
        "to the agent",
    )
    job_api_files: bool = Field(
        default=False,
        alias="JOB_API_FILES",
        description="true if the job API accepts files (Pagehand's job server does); otherwise the agent gets links",
    )
    job_api_instruction: bool = Field(
        default=False,
        alias="JOB_API_INSTRUCTION",
        description="true if the job API accepts, beside a prompt with context, which part of it is the person's own "
        "words (Pagehand's job server does)",
    )
    replies: ReplyMode = Field(
        default=ReplyMode.EVERYONE,
        alias="PAGEHAND_REPLIES",
        description="whose replies in a job's thread are sent: everyone, participants, or mentions (only these)",
    )

    @field_validator("job_api_url", "job_api_key", "job_api_project")
    @classmethod
    def _needed_without_a_file(cls, value: object, info: ValidationInfo) -> object:
        if value is None and info.data.get("projects_file", "unreadable") is None:
            raise ValueError("is missing")
        return value

    @property
    def projects(self) -> tuple[ProjectSettings, ...]:
        """Every project with its job API."""
        if self.projects_file is None:
            name = self.job_api_project or ""
            return (self._project(ProjectTable.model_construct(name=name, project=name)),)
        return tuple(map(self._project, self.projects_file.projects))

    @property
    def known_projects(self) -> Projects:
        """The projects that a request can be for, and the settings of channels."""
        tables = self.projects_file.channels if self.projects_file else ()
        return Projects(
            all=tuple(each.project for each in self.projects),
            channels={table.id: self._channel(table) for table in tables},
            any_channel=ChannelSettings(replies=self.replies),
        )

    def _project(self, table: ProjectTable) -> ProjectSettings:
        abilities = self._abilities(table)
        job_api = JobApiSettings(
            base_url=table.url or self.job_api_url or "",
            api_key=table.key or self.job_api_key or RotatingSecret(""),
            get_path=table.get_path or self.job_api_get_path,
            timeout=table.timeout or self.job_api_timeout,
            can_cancel=abilities.cancel,
            takes_files=abilities.files,
        )
        channels = self.projects_file.channels if self.projects_file else ()
        assigned = (channel.id for channel in channels if _belongs_to(channel, table))
        project = Project(table.name, frozenset({*table.channels, *assigned}), table.words, abilities, table.project)
        return ProjectSettings(project, table.project, job_api)

    def _abilities(self, table: ProjectTable) -> JobApiAbilities:
        default = JobApiAbilities(
            idempotent=self.job_api_idempotent,
            requester=self.job_api_requester,
            cancel=self.job_api_cancel,
            files=self.job_api_files,
            instruction=self.job_api_instruction,
        )
        given = {each.name: getattr(table, each.name) for each in fields(JobApiAbilities)}
        return replace(default, **{name: value for name, value in given.items() if value is not None})

    def _channel(self, table: ChannelTable) -> ChannelSettings:
        given = table.model_dump(exclude={"id", "project"}, exclude_none=True)
        return replace(ChannelSettings(replies=self.replies), **given)


def _belongs_to(channel: ChannelTable, project: ProjectTable) -> bool:
    return channel.project is not None and channel.project.casefold() == project.name.casefold()
