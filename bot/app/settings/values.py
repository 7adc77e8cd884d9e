"""The formats of the bot's settings. The messages say what to write, and never quote the value."""

import re
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, SecretStr

from bot.queue.engine import sqlite_path
from bot.runtime.rotating_secrets import RotatingSecret, rotating_secret

_WORD = "[A-Za-z0-9_-]"


def _matching(pattern: str, otherwise: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(otherwise)
        return value

    return check


def _like(pattern: str, otherwise: str) -> AfterValidator:
    return AfterValidator(_matching(pattern, otherwise))


def _database_url(value: SecretStr) -> SecretStr:
    sqlite_path(value.get_secret_value())
    return value


def _ids(pattern: str, what: str) -> BeforeValidator:
    """Returns a validator that reads ids from a comma-separated text."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        ids = value.replace(",", " ").split()
        if not all(re.fullmatch(pattern, each) for each in ids):
            raise ValueError(f"must be {what}, separated by commas")
        return frozenset(ids)

    return BeforeValidator(read)


Command = Annotated[str, _like(r"/\S+", "must be one word that begins with a slash, like /docs")]
Host = Annotated[
    str,
    _like(r"[A-Za-z0-9.:\[\]-]{1,253}", "must be an address or host name of this machine, without http:// and port"),
]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
_bot_token = _matching(f"xoxb-{_WORD}{{8,}}", "must be the bot token: xoxb- and letters, digits and hyphens")
BotToken = Annotated[RotatingSecret, rotating_secret(_bot_token, most=1)]
_app_token = _matching(f"xapp-{_WORD}{{8,}}", "must be the app-level token: xapp- and letters, digits and hyphens")
AppToken = Annotated[RotatingSecret, rotating_secret(_app_token, most=1)]
_signing_secret = _matching(
    f"(?!xox|xapp-){_WORD}{{16,}}", "must be the signing secret: one word of at least 16 letters and digits"
)
SigningSecret = Annotated[RotatingSecret, rotating_secret(_signing_secret)]
_metrics_token = _matching("[!-~]{16,}", "must be one word of at least 16 ASCII letters, digits and signs")
MetricsToken = Annotated[RotatingSecret, rotating_secret(_metrics_token)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_url)]
_CHANNEL_ID = "[CG][A-Z0-9]{1,30}"
ChannelId = Annotated[
    str,
    _like(_CHANNEL_ID, "must be a channel id, like C0123ABCD (Slack shows it at the end of the channel's details)"),
]
PersonIds = Annotated[frozenset[str], _ids("[UW][A-Z0-9]{1,30}", "ids of users like U0123ABCD")]
GroupIds = Annotated[frozenset[str], _ids("S[A-Z0-9]{1,30}", "ids of user groups like S0123ABCD")]
ChannelIds = Annotated[frozenset[str], _ids(_CHANNEL_ID, "ids of channels like C0123ABCD")]
Scopes = Annotated[frozenset[str], _ids(r"[a-z_.]+:[a-z_.]+", "scopes by Slack's names, like files:read")]
