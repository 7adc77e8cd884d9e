"""The settings of `pagehand run`: read once from the environment, all faults listed at once, secrets kept secret."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from yarl import URL

from bot.errors import ConfigError


def _http_url(value: str) -> str:
    url = URL(value)
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError("must be an address that begins with http:// or https://")
    return value.rstrip("/")


def _command(value: str) -> str:
    if not value.startswith("/") or not value[1:] or " " in value:
        raise ValueError("must be one word that begins with a slash, like /docs")
    return value


def _job_path(value: str) -> str:
    if not value.startswith("/") or "{id}" not in value:
        raise ValueError("must begin with a slash and contain {id}")
    return value


def _bot_token(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().startswith("xoxb-"):
        raise ValueError("must begin with xoxb- (the app-level token begins with xapp-, it is the other one)")
    return value


def _app_token(value: SecretStr | None) -> SecretStr | None:
    if value is not None and not value.get_secret_value().startswith("xapp-"):
        raise ValueError("must begin with xapp- (the bot token begins with xoxb-, it is the other one)")
    return value


class Config(BaseModel):
    """Every setting. The alias is its name in the environment; the description says what it is or where to get it.

    A secret can also be read from a file that `<name>_FILE` names, as container platforms provide them.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    slack_bot_token: Annotated[SecretStr, AfterValidator(_bot_token)] = Field(
        alias="SLACK_BOT_TOKEN", description="on your app's page at api.slack.com/apps, under OAuth & Permissions"
    )
    slack_app_token: Annotated[SecretStr | None, AfterValidator(_app_token)] = Field(
        default=None,
        alias="SLACK_APP_TOKEN",
        description="for Socket Mode: on your app's page, under Basic Information, App-Level Tokens, "
        "with the scope connections:write",
    )
    slack_signing_secret: SecretStr | None = Field(
        default=None,
        alias="SLACK_SIGNING_SECRET",
        description="for HTTP instead of Socket Mode: on your app's page, under Basic Information, App Credentials",
    )
    slack_api_url: Annotated[str, AfterValidator(_http_url)] = Field(
        default="https://slack.com/api",
        alias="SLACK_API_URL",
        description="Slack's Web API; change it only to try another workspace, like Pagehand's own",
    )
    job_api_url: Annotated[str, AfterValidator(_http_url)] = Field(
        alias="JOB_API_URL", description="the base address of the job API, without /v2: ask whoever runs it"
    )
    job_api_key: SecretStr = Field(
        alias="JOB_API_KEY",
        min_length=1,
        description="an admin API key, from the API keys page of the project owner's dashboard",
    )
    job_api_project: str = Field(
        alias="JOB_API_PROJECT", min_length=1, description="the id of the documentation project that jobs work on"
    )
    job_api_get_path: Annotated[str, AfterValidator(_job_path)] = Field(
        default="/v2/agent/{projectId}/job/{id}", alias="JOB_API_GET_PATH", description="the path that reads a job"
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
    database_url: SecretStr = Field(
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
        default=30.0, ge=0.1, le=600, alias="PAGEHAND_POLL_SLOWEST", description="seconds between polls at rest"
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
    health_port: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        alias="PAGEHAND_HEALTH_PORT",
        description="with Socket Mode: a port on which GET /health tells whether the bot can work; none by default",
    )
    log_level: str = Field(
        default="INFO",
        alias="PAGEHAND_LOG_LEVEL",
        pattern="^(DEBUG|INFO|WARNING|ERROR)$",
        description="DEBUG, INFO, WARNING or ERROR",
    )

    @model_validator(mode="after")
    def _polls(self) -> Self:
        if self.poll_slowest < self.poll_fastest:
            raise ValueError("PAGEHAND_POLL_SLOWEST must not be shorter than PAGEHAND_POLL_FASTEST")
        return self

    @property
    def secrets(self) -> list[str]:
        """Every secret in the clear, for the log's filter."""
        given = (self.slack_bot_token, self.slack_app_token, self.slack_signing_secret, self.job_api_key)
        return [secret.get_secret_value() for secret in given if secret] + passwords(
            self.database_url.get_secret_value()
        )


def passwords(url: str) -> list[str]:
    """What may be a database URL's password, as it is written and as it is meant. Read loosely: one whose special
    characters are not encoded makes the URL unusable, and is a password all the same.
    """
    found = re.findall(r"://[^:/?#@]*:(.*?)@", url) + re.findall(r"://[^:/?#@]*:(.*)@", url)
    found += re.findall(r"[?&]password=([^&#]*)", url)
    return list(dict.fromkeys(form for password in found for form in (password, unquote(password)) if form))


def load(environ: Mapping[str, str]) -> Config:
    """Reads the settings from an environment; ConfigError lists all that is missing or malformed."""
    values: dict[str, str] = {}
    faults: list[str] = []
    for name in _names():
        try:
            value = _value(name, environ)
        except OSError as error:
            faults.append(f"{name}_FILE names a file that can't be read: {error.strerror}")
            continue
        if value:
            values[name] = value
    if not {"SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"} & values.keys():
        faults.append(
            "SLACK_APP_TOKEN is missing (for Socket Mode; or set SLACK_SIGNING_SECRET to receive over HTTP): "
            f"{Config.model_fields['slack_app_token'].description}"
        )
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        found = [_sentence(fault) for fault in error.errors(include_input=False, include_url=False)]
        raise ConfigError(sorted({*faults, *found})) from None
    if faults:
        raise ConfigError(faults)
    return config


def _names() -> Iterator[str]:
    return (field.alias or name for name, field in Config.model_fields.items())


def _value(name: str, environ: Mapping[str, str]) -> str:
    file = environ.get(f"{name}_FILE", "")
    return environ.get(name, "").strip() or (Path(file).read_text(encoding="utf-8").strip() if file else "")


def _sentence(fault: ErrorDetails) -> str:
    if not fault["loc"]:
        return fault["msg"].removeprefix("Value error, ")
    name = str(fault["loc"][0])
    field = next(field for field in Config.model_fields.values() if field.alias == name)
    what = "is missing" if fault["type"] == "missing" else fault["msg"].removeprefix("Value error, ")
    return f"{name} {what[0].lower()}{what[1:]}: {field.description}"
