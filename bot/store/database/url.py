"""Defines which database URLs are valid, without opening anything."""

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from bot.errors import ConfigError

_SCHEME = re.compile(r"(sqlite|postgres)(?:ql)?(?:\+[a-z0-9]{1,20})?://", re.IGNORECASE)
_PORT = re.compile(r"[0-9]{1,5}")
_HIGHEST_PORT = 65_535


def sqlite_path(url: str) -> str | None:
    """Returns the file that a SQLite URL names; None for PostgreSQL.

    Raises:
        ValueError: It is neither, or unusable. The message continues the setting's name, and quotes no password.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        raise ValueError("must begin with sqlite:/// or postgresql://")
    if scheme[1].lower() == "sqlite":
        return _file(url)
    _check_postgres(postgres_dsn(url))
    return None


def existing_file(url: str) -> Path | None:
    """Returns the file of an existing SQLite database; None for PostgreSQL. Raises ConfigError for any other URL."""
    try:
        path = sqlite_path(url)
    except ValueError as error:
        raise ConfigError([f"DATABASE_URL {error}."]) from None
    if path is not None and not Path(path).is_file():
        raise ConfigError([f"DATABASE_URL names a file that is not there: {path}."])
    return None if path is None else Path(path)


def postgres_dsn(url: str) -> str:
    """Returns a PostgreSQL URL in asyncpg's form, without a driver."""
    return _SCHEME.sub("postgresql://", url, count=1)


def _file(url: str) -> str:
    try:
        path = make_url(url).database
    except ArgumentError:
        path = None
    if not path or path == ":memory:":
        raise ValueError("must name a file: sqlite:///pagehand.db, or sqlite:////with/its/path")
    try:
        _check_file(Path(path).absolute())
    except OSError as error:
        raise ValueError(f"names a file that cannot be looked at: {error.strerror}") from None
    return path


def _check_file(file: Path) -> None:
    if not file.parent.is_dir():
        raise ValueError(f"names a file in {file.parent}, which does not exist")
    if file.exists() and not file.is_file():
        raise ValueError(f"names {file}, which is not a file")


def _check_postgres(dsn: str) -> None:
    try:
        parts = urlsplit(dsn)
        if parts.query:
            parse_qsl(parts.query, strict_parsing=True)
        user, _, hosts = parts.netloc.rpartition("@")
        sound = "@" not in user and all(_is_host(host) for host in hosts.split(","))
    except ValueError:
        sound = False
    if not sound:
        raise ValueError(
            "must look like postgresql://user:password@host:5432/name, with special characters percent-encoded"
        )


def _is_host(text: str) -> bool:
    """Returns whether a host of a URL's list has a valid port, or none. An empty host is libpq's default."""
    port = text.rpartition("]")[2].partition(":")[2]
    return not port or (_PORT.fullmatch(port) is not None and 0 < int(port) <= _HIGHEST_PORT)
