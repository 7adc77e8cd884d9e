"""Taking what was deleted out of a database's files, as far as that is in our hands."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import text

from bot.store.database.engine import engine_for
from bot.store.database.errors import retry_transient
from bot.store.database.url import existing_file
from bot.store.schema.tables import metadata

_LONGEST = 3600.0
"""Seconds that a big table may take."""
_PATIENCE = 30.0


async def clear_traces(url: str) -> bool:
    """Takes out what was deleted: false where somebody who reads, or an error, keeps it from that. Raises ConfigError,
    StoreError.
    """
    file = await asyncio.to_thread(existing_file, url)
    if file is not None:
        return await asyncio.to_thread(_rewrite, file)
    await _vacuum(url)
    return True


def _rewrite(file: Path) -> bool:
    """The file is made anew without what was deleted, and its write-ahead log is emptied."""
    with closing(sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)) as database:
        try:
            database.execute("VACUUM")
            busy, _, _ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error:
            return False
    return not busy


async def _vacuum(url: str) -> None:
    engine = engine_for(url, statement_timeout=_LONGEST).execution_options(isolation_level="AUTOCOMMIT")

    async def once(_end: float) -> None:
        async with engine.connect() as connection:
            for table in metadata.sorted_tables:
                await connection.execute(text(f"VACUUM {table.name}"))

    try:
        await retry_transient(once)
    finally:
        await engine.dispose()
