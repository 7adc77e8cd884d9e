"""Creates SQLAlchemy engines from database URLs."""

from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    AsyncAdaptedQueuePool,
    Connection,
    Engine,
    NullPool,
    create_engine,
    event,
)
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from bot.errors import ConfigError, StoreUnavailable
from bot.runtime.private_files import owner_only
from bot.store.database.url import postgres_dsn, sqlite_path

STATEMENT_TIMEOUT = 10.0
"""Seconds. The server's own limit (`session.py`) is shorter; this one is for a network that loses answers."""
_SQLITE_PATIENCE = 2.0
"""Seconds that one attempt waits for another program's lock."""


def engine_for(url: str, *, statement_timeout: float = STATEMENT_TIMEOUT) -> AsyncEngine:
    """Returns the engine of a database.

    Args:
        url: `sqlite:///relative/path`, `sqlite:////absolute/path`, `postgresql://...` or `postgres://...`, the latter
            with everything that libpq supports.
        statement_timeout: Seconds that one statement may take on PostgreSQL.

    Raises:
        ConfigError: The URL is none of these. The message does not quote it, since it can contain a password.
    """
    try:
        path = sqlite_path(url)
    except ValueError as error:
        raise ConfigError([f"DATABASE_URL {error}."]) from None
    return _postgres(postgres_dsn(url), statement_timeout) if path is None else _sqlite(path)


def _postgres(dsn: str, statement_timeout: float) -> AsyncEngine:
    from bot.store.database.postgres import postgres_engine  # noqa: PLC0415 - asyncpg is only imported where it is used

    return postgres_engine(dsn, statement_timeout)


def _sqlite(path: str) -> AsyncEngine:
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=path),
        poolclass=AsyncAdaptedQueuePool,
        pool_size=1,
        max_overflow=0,
        connect_args={"timeout": _SQLITE_PATIENCE, "isolation_level": None},
        hide_parameters=True,
    )
    file = Path(path)
    event.listen(engine.sync_engine, "do_connect", lambda *_: _keep_to_owner(file))
    event.listen(engine.sync_engine, "connect", _set_pragmas)
    event.listen(engine.sync_engine, "begin", _begin_immediate)
    return engine


def _keep_to_owner(file: Path) -> None:
    # Runs before each connection; a returned value would replace the connection.
    owner_only(file)
    if not file.exists():
        # SQLite's own words say less, and aiosqlite's thread would print a traceback.
        raise StoreUnavailable(f"The database {file} could not be made. Check that its directory may be written.")


def in_one_thread(engine: AsyncEngine) -> Engine:
    """Returns a plain engine for the same SQLite database, for one thread, which begins and ends transactions."""
    plain = create_engine(
        URL.create("sqlite", database=engine.url.database),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args={"timeout": _SQLITE_PATIENCE},
        hide_parameters=True,
    )
    file = Path(str(engine.url.database))
    event.listen(plain, "do_connect", lambda *_: _keep_to_owner(file))
    event.listen(plain, "connect", _set_pragmas)
    return plain


def _set_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    # A transaction that begins as a reader cannot wait for the write lock later: SQLite fails it at once.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
