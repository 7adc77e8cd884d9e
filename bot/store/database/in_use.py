"""Detects whether an instance of Pagehand is using a database."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from bot.store.database.engine import engine_for
from bot.store.database.errors import classify, retry_transient
from bot.store.database.postgres_pool import APPLICATION_NAME
from bot.store.database.url import existing_file

RECENT = 60.0
"""Seconds. Each instance looks for due work more often. Behind a pooler, connections outlive instances."""
_PATIENCE, _PAUSE = 2.0, 0.1
"""Seconds. A server notices a closed connection a moment later."""
_OTHERS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND application_name = :name"
    " AND coalesce(state_change, clock_timestamp()) > clock_timestamp() - make_interval(secs => :recent)"
)


async def is_in_use(url: str) -> bool:
    """Returns whether anybody else has this database open, or had recently. Raises ConfigError, StoreError."""
    file = await asyncio.to_thread(existing_file, url)
    if file is not None:
        return await asyncio.to_thread(_is_open, file)
    engine = engine_for(url)
    try:
        return await _stays(lambda: _has_others(engine))
    finally:
        await engine.dispose()


async def _stays(is_so: Callable[[], Awaitable[bool]]) -> bool:
    end = asyncio.get_running_loop().time() + _PATIENCE
    while await is_so():
        if asyncio.get_running_loop().time() >= end:
            return True
        await asyncio.sleep(_PAUSE)
    return False


async def _has_others(engine: AsyncEngine) -> bool:
    async def once(_end: float) -> bool:
        async with engine.begin() as connection:
            found = await connection.execute(_OTHERS, {"name": APPLICATION_NAME, "recent": RECENT})
            return int(found.scalar_one()) > 0

    return await retry_transient(once)


def _is_open(file: Path) -> bool:
    """SQLite grants exclusive access to a database with a write-ahead log only if no other connection has it open."""
    with closing(sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)) as database:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        try:
            database.execute("BEGIN EXCLUSIVE")
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            database.execute("COMMIT")
        except sqlite3.Error as error:
            failure = classify(error)
            if failure is None or failure.transient:
                return True
            raise failure.error from None
    return False
