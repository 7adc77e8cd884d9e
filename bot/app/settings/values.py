"""The formats of the bot's settings. The messages say what to write, and never quote the value."""

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, SecretStr

from bot.app.settings.features import Feature, features_in
from bot.runtime.rotating_secrets import RotatingSecret, rotating_secret
from bot.store.database.url import sqlite_path

_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,253}")
_SIGNS = "letters, digits and hyphens"
_BOT_TOKEN = re.compile(r"xoxb-[A-Za-z0-9_-]{8,}")
_APP_TOKEN = re.compile(r"xapp-[A-Za-z0-9_-]{8,}")
_SIGNING_SECRET = re.compile(r"(?!xox|xapp-)[A-Za-z0-9_-]{16,}")
_METRICS_TOKEN = re.compile(r"[!-~]{16,}")
_CHANNEL_ID = re.compile(r"[CG][A-Z0-9]{1,30}")
_PERSON_ID = re.compile(r"[UW][A-Z0-9]{1,30}")
_ADDRESS = re.compile(r"(?=.*[0-9])[CGUW][A-Z0-9]{7,30}")
_GROUP_ID = re.compile(r"S[A-Z0-9]{1,30}")


_KINDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile("xoxb-.*"), "a bot token (xoxb-…)"),
    (re.compile("xapp-.*"), "an app-level token (xapp-…)"),
    (re.compile("xoxp-.*"), "a user token (xoxp-…)"),
    (re.compile(r"xoxe\..*"), "a configuration token (xoxe.…)"),
    (re.compile("xox[a-z]-.*"), "another kind of token (xox…)"),
    (re.compile("[0-9a-f]{32}"), "what looks like a signing secret or a client secret"),
)


def _mixed_up(value: str) -> str:
    """Says what else of Slack's a value is; empty where that cannot be told."""
    kind = next((kind for pattern, kind in _KINDS if pattern.fullmatch(value)), "")
    return f"holds {kind}, but " if kind else ""


def _command(value: str) -> str:
    if not value.startswith("/") or not value[1:] or len(value.split()) != 1:
        raise ValueError("must be one word that begins with a slash, like /docs")
    return value


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("must be an address or host name of this machine, without http:// and port")
    return value


def _log_level(value: str) -> str:
    if value not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        raise ValueError("must be one of these words")
    return value


def _bot_token(token: str) -> None:
    if not _BOT_TOKEN.fullmatch(token):
        other = "" if token.startswith("xoxb-") else _mixed_up(token)
        raise ValueError(f"{other}must be the bot token: xoxb- and {_SIGNS}")


def _app_token(token: str) -> None:
    if not _APP_TOKEN.fullmatch(token):
        other = "" if token.startswith("xapp-") else _mixed_up(token)
        raise ValueError(f"{other}must be the app-level token: xapp- and {_SIGNS}")


def _signing_secret(secret: str) -> None:
    if not _SIGNING_SECRET.fullmatch(secret):
        raise ValueError(f"{_mixed_up(secret)}must be the signing secret: one word of at least 16 letters and digits")


def _metrics_token(token: str) -> None:
    if not _METRICS_TOKEN.fullmatch(token):
        raise ValueError("must be one word of at least 16 ASCII letters, digits and signs")


def _database_url(value: SecretStr) -> SecretStr:
    sqlite_path(value.get_secret_value())
    return value


def _channel_id(value: str) -> str:
    if not _CHANNEL_ID.fullmatch(value):
        raise ValueError("must be a channel id, like C0123ABCD (Slack shows it at the end of the channel's details)")
    return value


def is_address(value: str) -> bool:
    """Whether a value is the id of a person or of a channel in Slack, and not a word in capitals."""
    return bool(_ADDRESS.fullmatch(value))


def _id_list(pattern: re.Pattern[str], what: str) -> Callable[[object], object]:
    """Returns a validator that reads ids from a comma-separated text."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        ids = value.replace(",", " ").split()
        if not all(pattern.fullmatch(each) for each in ids):
            raise ValueError(f"must be {what}, separated by commas")
        return frozenset(ids)

    return read


def _features(value: object) -> object:
    return features_in(value) if isinstance(value, str) else value


Command = Annotated[str, AfterValidator(_command)]
Host = Annotated[str, AfterValidator(_host)]
LogLevel = Annotated[str, AfterValidator(_log_level)]
BotToken = Annotated[RotatingSecret, rotating_secret(_bot_token, most=1)]
AppToken = Annotated[RotatingSecret, rotating_secret(_app_token, most=1)]
SigningSecret = Annotated[RotatingSecret, rotating_secret(_signing_secret)]
MetricsToken = Annotated[RotatingSecret, rotating_secret(_metrics_token)]
Features = Annotated[frozenset[Feature], BeforeValidator(_features)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_url)]
ChannelId = Annotated[str, AfterValidator(_channel_id)]
PersonIds = Annotated[frozenset[str], BeforeValidator(_id_list(_PERSON_ID, "ids of users like U0123ABCD"))]
GroupIds = Annotated[frozenset[str], BeforeValidator(_id_list(_GROUP_ID, "ids of user groups like S0123ABCD"))]
ChannelIds = Annotated[frozenset[str], BeforeValidator(_id_list(_CHANNEL_ID, "ids of channels like C0123ABCD"))]
