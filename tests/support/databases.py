"""Engines for statements of the tests themselves, on either database."""

from typing import Any

from sqlalchemy import URL, Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from bot.queue.engine import STATEMENT_TIMEOUT, postgres_dsn, sqlite_path
from bot.queue.postgres import postgres_engine


def engine_for(url: str, *, statement_timeout: float = STATEMENT_TIMEOUT) -> AsyncEngine:
    """On SQLite, each transaction begins as the writer."""
    path = sqlite_path(url)
    if path is None:
        return postgres_engine(postgres_dsn(url), statement_timeout)
    file = URL.create("sqlite+aiosqlite", database=path)
    engine = create_async_engine(file, connect_args={"timeout": 2.0, "isolation_level": None}, hide_parameters=True)
    event.listen(engine.sync_engine, "connect", _enforce_foreign_keys)
    event.listen(engine.sync_engine, "begin", _begin_immediate)
    return engine


def _enforce_foreign_keys(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
