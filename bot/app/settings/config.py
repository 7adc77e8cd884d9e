"""The settings of `pagehand run`, `pagehand web` and `pagehand worker`."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import SettingsConfigDict

from bot.app.settings import values
from bot.app.settings.projects import JobApiVariables, ProjectsFile, key_variables, read_projects
from bot.errors import ConfigError
from bot.jobapi.settings import BaseUrl
from bot.queue.engine import passwords_in
from bot.runtime.http.proxies import is_this_machine
from bot.runtime.logging import LogFormat
from bot.runtime.rotating_secrets import KnownSecrets, RotatingSecret
from bot.runtime.settings import SettingNames, read_variable, variable_names
from bot.scheduler.settings import SchedulerVariables

CONFIGURATION_TOKEN = "PAGEHAND_CONFIGURATION_TOKEN"  # noqa: S105 - the setting's name
"""Only `setup` and `doctor` read it; it is never kept."""


class Config(JobApiVariables, SchedulerVariables):
    """Every setting of the bot. Its environment variable is its alias, or else begins with PAGEHAND_."""

    model_config = SettingsConfigDict(env_prefix="PAGEHAND_")

    slack_bot_token: values.BotToken = Field(
        alias="SLACK_BOT_TOKEN",
        description="on your app's page at api.slack.com/apps, under OAuth & Permissions",
    )
    slack_signing_secret: values.SigningSecret | None = Field(
        default=None,
        alias="SLACK_SIGNING_SECRET",
        description="for HTTP: on your app's page, under Basic Information, App Credentials",
    )
    slack_app_token: values.AppToken | None = Field(
        default=None,
        validate_default=True,
        alias="SLACK_APP_TOKEN",
        description="for Socket Mode: on your app's page, Basic Information, App-Level Tokens, with connections:write",
    )
    slack_api_url: BaseUrl = Field(
        default="https://slack.com/api",
        alias="SLACK_API_URL",
        description="Slack's Web API; change it only to try another workspace, like Pagehand's own",
    )
    database_url: values.DatabaseUrl = Field(
        default=SecretStr("sqlite:///pagehand.sqlite3"),
        alias="DATABASE_URL",
        description="sqlite:///FILE for one instance, postgresql://USER:PASSWORD@HOST/NAME for one or more",
    )
    command: values.Command = Field(default="/docs", max_length=32, description="the slash command, as in the manifest")
    admin: str = Field(
        default="",
        max_length=80,
        description="whom people should ask about problems: the id of a Slack user or channel, or a few words",
    )
    without: values.Scopes = Field(
        default=frozenset(),
        description="the optional scopes that were declined on purpose, such as files:read: nothing warns of them",
    )
    allow_guests: bool = Field(default=False, description="true if guests of the workspace may start jobs")
    allow_shared_channels: bool = Field(
        default=False,
        description="true if jobs may be started in channels shared with another organization",
    )
    allowed_people: values.PersonIds = Field(
        default=frozenset(),
        description="only these people, and those in PAGEHAND_ALLOWED_GROUPS, may start jobs; if empty, everyone may",
    )
    allowed_groups: values.GroupIds = Field(
        default=frozenset(),
        description="only members of these user groups may start jobs; if empty, everyone may",
    )
    allowed_channels: values.ChannelIds = Field(
        default=frozenset(),
        description="jobs may be started only in these channels; if empty, in every channel",
    )
    hourly_limit: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="how many requests one person may make in an hour; 0: no limit",
    )
    port: int = Field(
        default=3000, ge=0, le=65_535, alias="PORT", description="with HTTP: the port for Slack's requests and /health"
    )
    host: values.Host = Field(
        default="0.0.0.0",  # noqa: S104 - Slack calls from outside
        description="the address to listen on at PORT; 127.0.0.1 behind a proxy on this machine, :: for IPv6",
    )
    health_host: values.Host = Field(
        default="127.0.0.1",
        description="with Socket Mode: the address for PAGEHAND_HEALTH_PORT; 0.0.0.0 to allow checks from elsewhere",
    )
    health_port: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        description="with Socket Mode, and for `pagehand worker`: the port of GET /health; none by default",
    )
    metrics_token: values.MetricsToken | None = Field(
        default=None,
        description="the bearer token that GET /metrics requires; without one, they are at PAGEHAND_HEALTH_PORT only",
    )
    log_level: values.LogLevel = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR")
    log_format: LogFormat | None = Field(
        default=None,
        description="text is for people, json has one object a line; by default text on a terminal, json elsewhere",
    )

    @field_validator("slack_app_token")
    @classmethod
    def _one_way_to_receive(cls, value: RotatingSecret | None, info: ValidationInfo) -> RotatingSecret | None:
        if value is None and info.data.get("slack_signing_secret", "malformed") is None:
            raise ValueError("is missing (or set SLACK_SIGNING_SECRET to receive over HTTP)")
        return value

    @property
    def warnings(self) -> list[str]:
        """Warnings about settings that work but are insecure, a sentence each."""
        sent = [(f"the url of {each.project.name}", each.job_api.base_url, "the API key") for each in self.projects]
        if self.projects_file is None:
            sent = [("JOB_API_URL", self.projects[0].job_api.base_url, "the API key")]
        sent.append(("SLACK_API_URL", self.slack_api_url, "Slack's tokens"))
        return [
            f"{name} begins with http:// and names another machine: {what} and everything people write can be read on "
            "the way. Use https://."
            for name, url, what in sent
            if urlsplit(url).scheme == "http" and not is_this_machine(urlsplit(url).hostname or "")
        ]

    @property
    def without_effect(self) -> list[str]:
        """Settings that do nothing beside others, a sentence each."""
        unheard = self.webhook_senders and self.slack_app_token is not None
        why = "CODE_HOST_WEBHOOK_SECRET has no effect with SLACK_APP_TOKEN: webhooks are taken over HTTP only."
        return [why] if unheard else []

    @property
    def left_out(self) -> frozenset[str]:
        """The scopes that were declined on purpose. What another setting needs is not among them."""
        return self.without - {"usergroups:read"} if self.allowed_groups else self.without

    @property
    def rotating_secrets(self) -> tuple[RotatingSecret, ...]:
        """Every secret that can be replaced while the bot runs."""
        keys = (self.job_api_key, *(each.job_api.api_key for each in self.projects))
        keys += tuple(each.token for each in self.code_hosts)
        keys += tuple(secret for _, secret in self.webhook_senders)
        given = (self.slack_bot_token, self.slack_app_token, self.slack_signing_secret, self.metrics_token, *keys)
        return tuple(dict.fromkeys(secret for secret in given if secret is not None))

    @property
    def secrets(self) -> KnownSecrets:
        """Every secret in the clear, also those that replace them later, so that the log can mask it."""
        return KnownSecrets(passwords_in(self.database_url.get_secret_value()), self.rotating_secrets)


def setting_names(environ: Mapping[str, str]) -> SettingNames:
    """Returns the names of the bot's variables; those of the projects' keys are somebody's choice."""
    known = variable_names(Config) | {CONFIGURATION_TOKEN} | key_variables(environ)
    removed = {"PAGEHAND_PORT": "Set PORT instead."}
    return SettingNames(known, ("PAGEHAND_", "JOB_API_"), "PAGEHAND_JOBSERVER_", removed, near="PAG")


def load(environ: Mapping[str, str], further: Iterable[str] = ()) -> Config:
    """Reads the settings and the projects file, and checks the names of variables.

    Raises ConfigError with everything that is wrong, together with the sentences in `further`.
    """
    try:
        file, faults = read_projects(environ), list[str]()
    except ConfigError as error:  # it counts as empty, so that what it would replace is not reported as missing
        file, faults = ProjectsFile.model_construct(projects=()), error.faults
    faults += [*setting_names(environ).misspelt(environ), *further]
    return Config.from_environment(environ, faults, PAGEHAND_PROJECTS=file)


def database_url(environ: Mapping[str, str]) -> str:
    """Returns DATABASE_URL, for commands that need no other setting. Raises ConfigError if its file cannot be read."""
    default: SecretStr = Config.model_fields["database_url"].default
    return read_variable("DATABASE_URL", environ) or default.get_secret_value()
