"""Database URLs: which are valid, and what runs transactions in the databases that they name."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from sqlalchemy import URL, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.errors import ConfigError, StoreUnavailable
from bot.queue.errors import RETRY_FOR, StoreTimings, retry_transient
from bot.queue.postgres import PostgresPool, postgres_engine
from bot.queue.sqlite_thread import SqliteThread, ThreadConnection
from bot.runtime.private_files import owner_only

T = TypeVar("T")

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
    path = _sqlite_path(url)
    if path is not None and not Path(path).is_file():
        raise ConfigError([f"DATABASE_URL names a file that is not there: {path}."])
    return None if path is None else Path(path)


def _sqlite_path(url: str) -> str | None:
    try:
        return sqlite_path(url)
    except ValueError as error:
        raise ConfigError([f"DATABASE_URL {error}."]) from None


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


def passwords_in(url: str) -> list[str]:
    """Returns everything that may be the password in a database URL, as written and percent-decoded.

    It matches loosely: a password whose special characters are not encoded makes the URL unusable, but is still secret.
    """
    found = re.findall(r"://[^:/?#@]*:(.*?)@", url) + re.findall(r"://[^:/?#@]*:(.*)@", url)
    found += re.findall(r"[?&]password=([^&#]*)", url)
    return list(dict.fromkeys(form for password in found for form in (password, unquote(password)) if form))


STATEMENT_TIMEOUT = 10.0
"""Seconds. The server's own limit (`session.py`) is shorter; this one is for a network that loses answers."""
_SQLITE_PATIENCE = 2.0
"""Seconds that one attempt waits for another program's lock."""


DatabaseConnection = AsyncConnection | ThreadConnection


def open_database(
    url: str, timings: StoreTimings, *, statement_timeout: float = STATEMENT_TIMEOUT, autocommit: bool = False
) -> SqliteThread | PostgresPool:
    """Returns what runs transactions in a database, which it opens when it is first used.

    Args:
        url: `sqlite:///relative/path`, `sqlite:////absolute/path`, `postgresql://...` or `postgres://...`, the latter
            with everything that libpq supports.
        timings: Time limits.
        statement_timeout: Seconds that one statement may take on PostgreSQL.
        autocommit: On PostgreSQL, each statement is a transaction of its own.

    Raises:
        ConfigError: The URL is none of these. The message does not quote it, since it can contain a password.
    """
    path = _sqlite_path(url)
    if path is not None:
        return SqliteThread(sqlite_engine(path), timings)
    return PostgresPool(postgres_engine(postgres_dsn(url), statement_timeout, autocommit=autocommit), timings)


async def run_in(
    url: str,
    work: Callable[[DatabaseConnection], Awaitable[T]],
    *,
    statement_timeout: float = STATEMENT_TIMEOUT,
    retry_for: float = RETRY_FOR,
    autocommit: bool = False,
) -> T:
    """Runs `work` in a transaction of its own of a database, whatever its schema, again after a transient error.

    Raises:
        ConfigError: The URL does not name a database.
        StoreError: It cannot be opened, read or changed.
    """
    database = open_database(url, StoreTimings(), statement_timeout=statement_timeout, autocommit=autocommit)
    try:
        return await retry_transient(lambda end: database.run(work, urgent=True, end=end), retry_for=retry_for)
    finally:
        await database.close()


def _keep_to_owner(file: Path) -> None:
    # Runs before each connection; a returned value would replace the connection.
    owner_only(file)
    if not file.exists():
        # SQLite's own words say less.
        raise StoreUnavailable(f"The database {file} could not be made. Check that its directory may be written.")


def sqlite_engine(path: str) -> Engine:
    """Returns the engine of a SQLite database, for one thread, which begins and ends transactions."""
    engine = create_engine(
        URL.create("sqlite", database=path),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args={"timeout": _SQLITE_PATIENCE},
        hide_parameters=True,
    )
    event.listen(engine, "do_connect", lambda *_: _keep_to_owner(Path(path)))
    event.listen(engine, "connect", _set_pragmas)
    return engine


def _set_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
