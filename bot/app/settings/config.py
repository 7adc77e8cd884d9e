"""The settings of the bot: those of `pagehand run`, `pagehand web` and `pagehand worker`."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from bot.app.settings.projects.file import read_projects
from bot.app.settings.projects.tables import ProjectsFile
from bot.app.settings.projects.variables import JobApiVariables
from bot.app.settings.values import (
    AppToken,
    BotToken,
    ChannelIds,
    Command,
    DatabaseUrl,
    GroupIds,
    Host,
    LogLevel,
    PersonIds,
    SigningSecret,
)
from bot.errors import ConfigError
from bot.jobs.settings import BaseUrl, job_api_proxy
from bot.runtime.http.proxies import is_this_machine
from bot.runtime.settings import read_variable
from bot.slack.sending.slack_proxy import slack_proxy


class Config(JobApiVariables):
    """Every setting of the bot; the alias is its name in the environment."""

    slack_bot_token: BotToken = Field(
        alias="SLACK_BOT_TOKEN", description="on your app's page at api.slack.com/apps, under OAuth & Permissions"
    )
    slack_signing_secret: SigningSecret | None = Field(
        default=None,
        alias="SLACK_SIGNING_SECRET",
        description="on your app's page, under Basic Information, App Credentials",
    )
    slack_app_token: AppToken | None = Field(
        default=None,
        validate_default=True,
        alias="SLACK_APP_TOKEN",
        description="on your app's page, under Basic Information, App-Level Tokens, with the scope connections:write",
    )
    slack_api_url: BaseUrl = Field(
        default="https://slack.com/api",
        alias="SLACK_API_URL",
        description="Slack's Web API; change it only to try another workspace, like Pagehand's own",
    )
    database_url: DatabaseUrl = Field(
        default=SecretStr("sqlite:///pagehand.sqlite3"),
        alias="DATABASE_URL",
        description="sqlite:///FILE for one instance, postgresql://USER:PASSWORD@HOST/NAME for one or more",
    )
    command: Command = Field(
        default="/docs", alias="PAGEHAND_COMMAND", max_length=32, description="the slash command, as in the manifest"
    )
    admin: str = Field(
        default="",
        alias="PAGEHAND_ADMIN",
        max_length=80,
        description="whom people should ask when something is wrong with the set-up: a Slack user id or a few words",
    )
    merge_seconds: float = Field(
        default=3.0,
        ge=0,
        le=60,
        alias="PAGEHAND_MERGE_SECONDS",
        description="replies of one person that are written so many seconds apart go out as one; 0: each by itself",
    )
    allow_guests: bool = Field(
        default=False, alias="PAGEHAND_ALLOW_GUESTS", description="true if guests of the workspace may ask for jobs"
    )
    allow_shared_channels: bool = Field(
        default=False,
        alias="PAGEHAND_ALLOW_SHARED_CHANNELS",
        description="true if jobs may be asked for in channels that are shared with another organization",
    )
    allowed_people: PersonIds = Field(
        default=frozenset(),
        alias="PAGEHAND_ALLOWED_PEOPLE",
        description="the only people who may ask for jobs, besides those of PAGEHAND_ALLOWED_GROUPS; nobody named: all",
    )
    allowed_groups: GroupIds = Field(
        default=frozenset(),
        alias="PAGEHAND_ALLOWED_GROUPS",
        description="the only user groups whose people may ask for jobs; none named: all",
    )
    allowed_channels: ChannelIds = Field(
        default=frozenset(),
        alias="PAGEHAND_ALLOWED_CHANNELS",
        description="the only channels in which jobs may be asked for; none named: all",
    )
    hourly_limit: int = Field(
        default=0,
        ge=0,
        le=100_000,
        alias="PAGEHAND_HOURLY_LIMIT",
        description="how much one person may ask for in an hour; 0: no limit",
    )
    poll_fastest: float = Field(
        default=2.0, ge=0.1, le=60, alias="PAGEHAND_POLL_FASTEST", description="seconds between polls after a change"
    )
    poll_slowest: float = Field(
        default=30.0,
        validate_default=True,
        ge=0.1,
        le=600,
        alias="PAGEHAND_POLL_SLOWEST",
        description="seconds between polls at rest",
    )
    keep_days: float = Field(
        default=90.0,
        gt=0,
        le=36_500,
        alias="PAGEHAND_KEEP_DAYS",
        description="days after which a finished job and its texts are deleted from the database",
    )
    port: int = Field(
        default=3000, ge=0, le=65_535, alias="PORT", description="with HTTP: the port that Slack's requests come to"
    )
    host: Host = Field(
        default="0.0.0.0",  # noqa: S104 - Slack calls from outside
        alias="PAGEHAND_HOST",
        description="with HTTP: the address that Slack's requests come to; 127.0.0.1 behind a proxy on this machine",
    )
    health_host: Host = Field(
        default="127.0.0.1",
        alias="PAGEHAND_HEALTH_HOST",
        description="with Socket Mode: the address of PAGEHAND_HEALTH_PORT; 0.0.0.0 to be asked from elsewhere",
    )
    health_port: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        alias="PAGEHAND_HEALTH_PORT",
        description="with Socket Mode, and for `pagehand worker`: a port on which GET /health tells whether the bot "
        "can work; none by default",
    )
    log_level: LogLevel = Field(
        default="INFO",
        alias="PAGEHAND_LOG_LEVEL",
        description="DEBUG, INFO, WARNING or ERROR",
    )

    @field_validator("slack_app_token")
    @classmethod
    def _one_way_to_receive(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is None and info.data.get("slack_signing_secret", "malformed") is None:
            raise ValueError("is missing (for Socket Mode; or set SLACK_SIGNING_SECRET to receive over HTTP)")
        return value

    @field_validator("poll_slowest")
    @classmethod
    def _not_below_fastest(cls, value: float, info: ValidationInfo) -> float:
        if value < info.data.get("poll_fastest", 0.0):
            raise ValueError("must not be shorter than PAGEHAND_POLL_FASTEST")
        return value

    @property
    def warnings(self) -> list[str]:
        """What works, but should not stay so: a sentence for each."""
        sent = [(f"the url of {each.project.name}", each.job_api.base_url, "the API key") for each in self.projects]
        if self.projects_file is None:
            sent = [("JOB_API_URL", self.projects[0].job_api.base_url, "the API key")]
        sent.append(("SLACK_API_URL", self.slack_api_url, "Slack's tokens"))
        return [
            f"{name} begins with http:// and names another machine: {what}, and all that people write, can be read on "
            "the way there. Use https://."
            for name, url, what in sent
            if urlsplit(url).scheme == "http" and not is_this_machine(urlsplit(url).hostname or "")
        ]

    @property
    def secrets(self) -> list[str]:
        """Every secret in the clear, for the log's filter."""
        keys = (self.job_api_key, *(each.job_api.api_key for each in self.projects))
        given = (self.slack_bot_token, self.slack_app_token, self.slack_signing_secret, *keys)
        passwords = passwords_in(self.database_url.get_secret_value())
        return list(dict.fromkeys([*(secret.get_secret_value() for secret in given if secret), *passwords]))


def passwords_in(url: str) -> list[str]:
    """What may be a database URL's password, as it is written and as it is meant. Read loosely: one whose special
    characters are not encoded makes the URL unusable, and is a password all the same.
    """
    found = re.findall(r"://[^:/?#@]*:(.*?)@", url) + re.findall(r"://[^:/?#@]*:(.*)@", url)
    found += re.findall(r"[?&]password=([^&#]*)", url)
    return list(dict.fromkeys(form for password in found for form in (password, unquote(password)) if form))


def load(environ: Mapping[str, str], further: Iterable[str] = ()) -> Config:
    """Reads the settings with the file of projects, and looks at the proxies of the process. Raises ConfigError with
    all that is wrong, and with the sentences in `further`.
    """
    file, faults = _projects(environ)
    return Config.from_environment(environ, [*_proxy_faults(environ, file), *faults, *further], PAGEHAND_PROJECTS=file)


def _projects(environ: Mapping[str, str]) -> tuple[ProjectsFile | None, list[str]]:
    """The file of projects, and what is wrong with it: one that cannot be used is empty, so that nothing else is asked
    for in its place.
    """
    try:
        return read_projects(environ), []
    except ConfigError as error:
        return ProjectsFile.model_construct(projects=()), error.faults


def database_url(environ: Mapping[str, str]) -> str:
    """DATABASE_URL, for commands that need no other setting. Raises ConfigError where its file cannot be read."""
    default: SecretStr = Config.model_fields["database_url"].default
    return read_variable("DATABASE_URL", environ) or default.get_secret_value()


def _proxy_faults(environ: Mapping[str, str], file: ProjectsFile | None) -> list[str]:
    """What is wrong with the proxies of the process, which is where the libraries look for them."""
    slack_url = str(Config.model_fields["slack_api_url"].default)
    own = (table.url for table in file.projects if table.url) if file else ()
    faults: list[str] = []
    for proxy_of, name, default in (
        (slack_proxy, "SLACK_API_URL", slack_url),
        (job_api_proxy, "JOB_API_URL", ""),
        *((job_api_proxy, "", url) for url in own),
    ):
        try:
            proxy_of((read_variable(name, environ) if name else "") or default)
        except ConfigError as error:
            faults += error.faults
        except ValueError:
            continue  # the address itself is at fault, and is listed as that
    return list(dict.fromkeys(faults))
