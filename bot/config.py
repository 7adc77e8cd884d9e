"""The settings of the bot: those of `pagehand run`, `pagehand web` and `pagehand worker`."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator

from bot.errors import ConfigError
from bot.jobs.job_api_proxy import job_api_proxy
from bot.jobs.settings import GET_PATH, ApiKey, BaseUrl, GetPath, ProjectId
from bot.runtime.http.proxies import is_this_machine
from bot.runtime.settings import Settings, read_variable
from bot.slack.sending.slack_proxy import slack_proxy
from bot.store.database.url import sqlite_path


def _command(value: str) -> str:
    if not value.startswith("/") or not value[1:] or len(value.split()) != 1:
        raise ValueError("must be one word that begins with a slash, like /docs")
    return value


_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,253}")
_SIGNS = "letters, digits and hyphens"
_BOT_TOKEN = re.compile(r"xoxb-[A-Za-z0-9_-]{8,}")
_APP_TOKEN = re.compile(r"xapp-[A-Za-z0-9_-]{8,}")
_SIGNING_SECRET = re.compile(r"(?!xox|xapp-)[A-Za-z0-9_-]{16,}")


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("must be an address or a name of this machine, without http:// and port")
    return value


def _log_level(value: str) -> str:
    if value not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        raise ValueError("must be one of these words")
    return value


def _bot_token(value: SecretStr) -> SecretStr:
    if not _BOT_TOKEN.fullmatch(value.get_secret_value()):
        raise ValueError(f"must be xoxb- and {_SIGNS} (the app-level token begins with xapp-, it is the other one)")
    return value


def _app_token(value: SecretStr) -> SecretStr:
    if not _APP_TOKEN.fullmatch(value.get_secret_value()):
        raise ValueError(f"must be xapp- and {_SIGNS} (the bot token begins with xoxb-, it is the other one)")
    return value


def _signing_secret(value: SecretStr) -> SecretStr:
    if not _SIGNING_SECRET.fullmatch(value.get_secret_value()):
        raise ValueError("must be one word of at least 16 letters and digits (it is not one of the tokens)")
    return value


def _database_url(value: SecretStr) -> SecretStr:
    sqlite_path(value.get_secret_value())
    return value


class Config(Settings):
    """Every setting of the bot; the alias is its name in the environment."""

    slack_bot_token: Annotated[SecretStr, AfterValidator(_bot_token)] = Field(
        alias="SLACK_BOT_TOKEN", description="on your app's page at api.slack.com/apps, under OAuth & Permissions"
    )
    slack_signing_secret: Annotated[SecretStr, AfterValidator(_signing_secret)] | None = Field(
        default=None,
        alias="SLACK_SIGNING_SECRET",
        description="on your app's page, under Basic Information, App Credentials",
    )
    slack_app_token: Annotated[SecretStr, AfterValidator(_app_token)] | None = Field(
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
    job_api_url: BaseUrl = Field(
        alias="JOB_API_URL", description="the base address of the job API, without /v2: ask whoever runs it"
    )
    job_api_key: ApiKey = Field(
        alias="JOB_API_KEY",
        description="an admin API key, from the API keys page of the project owner's dashboard",
    )
    job_api_project: ProjectId = Field(
        alias="JOB_API_PROJECT", min_length=1, description="the id of the documentation project that jobs work on"
    )
    job_api_get_path: GetPath = Field(
        default=GET_PATH, alias="JOB_API_GET_PATH", description="the path that reads a job"
    )
    job_api_timeout: float = Field(
        default=20.0, gt=0, le=60, alias="JOB_API_TIMEOUT", description="seconds that one call may take in all"
    )
    job_api_idempotent: bool = Field(
        default=False,
        alias="JOB_API_IDEMPOTENT",
        description="true if the job API runs a repeated Idempotency-Key only once (Pagehand's job server does): "
        "then what may have arrived is sent again without asking",
    )
    job_api_requester: bool = Field(
        default=False,
        alias="JOB_API_REQUESTER",
        description="true if the job API takes who asked (Pagehand's job server does): then the name, the Slack user "
        "id and the thread's address go with each request, for the pull request",
    )
    database_url: Annotated[SecretStr, AfterValidator(_database_url)] = Field(
        default=SecretStr("sqlite:///pagehand.sqlite3"),
        alias="DATABASE_URL",
        description="sqlite:///FILE for one instance, postgresql://USER:PASSWORD@HOST/NAME for one or more",
    )
    command: Annotated[str, AfterValidator(_command)] = Field(
        default="/docs", alias="PAGEHAND_COMMAND", max_length=32, description="the slash command, as in the manifest"
    )
    admin: str = Field(
        default="",
        alias="PAGEHAND_ADMIN",
        max_length=80,
        description="whom people should ask when something is wrong with the set-up: a Slack user id or a few words",
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
    host: Annotated[str, AfterValidator(_host)] = Field(
        default="0.0.0.0",  # noqa: S104 - Slack calls from outside
        alias="PAGEHAND_HOST",
        description="with HTTP: the address that Slack's requests come to; 127.0.0.1 behind a proxy on this machine",
    )
    health_host: Annotated[str, AfterValidator(_host)] = Field(
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
    log_level: Annotated[str, AfterValidator(_log_level)] = Field(
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
        sent = (
            ("JOB_API_URL", self.job_api_url, "the API key"),
            ("SLACK_API_URL", self.slack_api_url, "Slack's tokens"),
        )
        return [
            f"{name} begins with http:// and names another machine: {what}, and all that people write, can be read on "
            "the way there. Use https://."
            for name, url, what in sent
            if urlsplit(url).scheme == "http" and not is_this_machine(urlsplit(url).hostname or "")
        ]

    @property
    def secrets(self) -> list[str]:
        """Every secret in the clear, for the log's filter."""
        given = (self.slack_bot_token, self.slack_app_token, self.slack_signing_secret, self.job_api_key)
        return [secret.get_secret_value() for secret in given if secret] + passwords_in(
            self.database_url.get_secret_value()
        )


def passwords_in(url: str) -> list[str]:
    """What may be a database URL's password, as it is written and as it is meant. Read loosely: one whose special
    characters are not encoded makes the URL unusable, and is a password all the same.
    """
    found = re.findall(r"://[^:/?#@]*:(.*?)@", url) + re.findall(r"://[^:/?#@]*:(.*)@", url)
    found += re.findall(r"[?&]password=([^&#]*)", url)
    return list(dict.fromkeys(form for password in found for form in (password, unquote(password)) if form))


def load(environ: Mapping[str, str], further: Iterable[str] = ()) -> Config:
    """Reads the settings, and looks at the proxies of the process. Raises ConfigError with all that is wrong, and with
    the sentences in `further`.
    """
    return Config.from_environment(environ, [*_proxy_faults(environ), *further])


def database_url(environ: Mapping[str, str]) -> str:
    """DATABASE_URL, for commands that need no other setting. Raises ConfigError where its file cannot be read."""
    default: SecretStr = Config.model_fields["database_url"].default
    return read_variable("DATABASE_URL", environ) or default.get_secret_value()


def _proxy_faults(environ: Mapping[str, str]) -> list[str]:
    """What is wrong with the proxies of the process, which is where the libraries look for them."""
    slack_url = str(Config.model_fields["slack_api_url"].default)
    faults: list[str] = []
    for proxy_of, name, default in ((slack_proxy, "SLACK_API_URL", slack_url), (job_api_proxy, "JOB_API_URL", "")):
        try:
            proxy_of(read_variable(name, environ) or default)
        except ConfigError as error:
            faults += error.faults
        except ValueError:
            continue  # the address itself is at fault, and is listed as that
    return list(dict.fromkeys(faults))
