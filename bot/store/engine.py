"""Database URLs to SQLAlchemy engines."""

import re
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import URL, AsyncAdaptedQueuePool, Connection, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from bot.errors import ConfigError

_SCHEME = re.compile(r"(sqlite|postgres)(?:ql)?(?:\+[a-z0-9]+)?://", re.IGNORECASE)
_POSTGRES_FORM = (
    "The database's URL can't be used. It looks like postgresql://user:password@host:5432/name, with special characters"
    " percent-encoded; files that it names, such as sslrootcert, have to exist."
)
_SQLITE_PATIENCE = 2.0
"""Seconds that one try waits for another program's lock."""
_CONNECT_TIMEOUT = 5.0
_STATEMENT_TIMEOUT = 10.0
"""Seconds; the server's own limit (`session.py`) is shorter, this one is for a network that swallows answers."""


def engine_for(url: str) -> AsyncEngine:
    """The engine of a database.

    Args:
        url: `sqlite:///relative/path`, `sqlite:////absolute/path`, `postgresql://...` or `postgres://...`, the latter
            with all that libpq allows.

    Raises:
        ConfigError: It is none of these. The URL is not quoted, since it can hold a password.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        raise ConfigError(["The database's URL has to begin with sqlite:/// or postgresql://."])
    if scheme[1].lower() == "sqlite":
        return _sqlite(url)
    return _postgres("postgresql://" + url[scheme.end() :])


def _sqlite(url: str) -> AsyncEngine:
    try:
        path = make_url(url).database
    except ArgumentError:
        path = None
    if not path or path == ":memory:":
        raise ConfigError(
            ["The database's URL has to name a file: sqlite:///pagehand.db, or sqlite:////with/its/path."]
        )
    if not Path(path).absolute().parent.is_dir():
        raise ConfigError([f"The database's directory does not exist: {Path(path).absolute().parent}."])
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=path),
        poolclass=AsyncAdaptedQueuePool,
        pool_size=1,
        max_overflow=0,
        connect_args={"timeout": _SQLITE_PATIENCE, "isolation_level": None},
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "connect", _set_pragmas)
    event.listen(engine.sync_engine, "begin", _begin_immediate)
    return engine


def _set_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    # A transaction that begins as a reader can't wait for the lock later: SQLite fails it at once.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _postgres(dsn: str) -> AsyncEngine:
    address, _, options = dsn.partition("?")
    # Hosts add this one to the URLs they give out; asyncpg would hand it to the server as a setting, which refuses it.
    known = [option for option in options.split("&") if option and not option.startswith("channel_binding=")]
    dsn = f"{address}?{'&'.join(known)}"

    async def connect() -> "asyncpg.Connection[Any]":
        # asyncpg reads the URL itself: unlike SQLAlchemy it knows libpq's parameters (sslmode, several hosts, sockets).
        try:
            return await asyncpg.connect(
                dsn,
                timeout=_CONNECT_TIMEOUT,
                command_timeout=_STATEMENT_TIMEOUT,
                server_settings={"application_name": "pagehand"},
            )
        except ValueError:
            # Not quoted: what can't be parsed may be a piece of the password.
            raise ConfigError([_POSTGRES_FORM]) from None

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        pool_size=5,
        max_overflow=5,
        pool_timeout=_CONNECT_TIMEOUT,
        pool_recycle=1800,
        hide_parameters=True,
    )
