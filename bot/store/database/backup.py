"""A database's files: copying a running SQLite database, and clearing deleted data from the files."""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import text

from bot.errors import ConfigError, StoreUnavailable
from bot.runtime.private_files import owner_only
from bot.store.database.engine import engine_for
from bot.store.database.errors import retry_transient
from bot.store.database.url import existing_file
from bot.store.schema.migration import schema_state
from bot.store.schema.tables import metadata

_OLDER_IN_DOUBT = (
    "UPDATE notices SET uncertain = 1 WHERE due_at IS NOT NULL",
    "UPDATE requests SET state = 'sending', claimed_by = 'backup', claimed_until = 0 WHERE state = 'waiting'",
    "UPDATE notices SET revision = revision + 2 WHERE key LIKE '%/mark'",
)
"""Open notices and requests in the copy may have been sent by the time it is restored, so they are marked in doubt. And
a reply may have any reaction by then. This is for backups made before a migration: no column here is missing in an
older schema.
"""


async def backup(url: str, target: Path, *, mark_in_doubt: Callable[[str], Awaitable[object]]) -> None:
    """Copies the SQLite database at `url` into a new file while it is in use. The file is complete as soon as it is
    there. `mark_in_doubt` gets the URL of a copy whose schema this program can work with. Raises ConfigError for any
    other database, StoreUnavailable if the file exists or the copy fails.
    """
    source = await asyncio.to_thread(existing_file, url)
    if source is None:
        raise ConfigError(["DATABASE_URL is not a SQLite database: for PostgreSQL, use pg_dump."])
    if await asyncio.to_thread(target.exists):
        raise StoreUnavailable(f"{target} is there already: name a new file.")
    try:
        with TemporaryDirectory(dir=target.parent, prefix=".pagehand-backup-") as directory:
            file = Path(directory) / "copy.sqlite3"
            await asyncio.to_thread(_copy, source, file)
            # Without this, a restored copy would send open notices and requests again.
            if (await schema_state(f"sqlite:///{file}")).usable:
                await mark_in_doubt(f"sqlite:///{file}")
            else:
                await asyncio.to_thread(_mark_older_in_doubt, file)
            await asyncio.to_thread(_put, file, target)
    except sqlite3.Error as error:
        raise StoreUnavailable(f"The copy failed: {error}.") from None


def _put(file: Path, target: Path) -> None:
    with file.open("rb") as written:
        os.fsync(written.fileno())
    file.rename(target)


def _copy(source: Path, target: Path) -> None:
    owner_only(target)
    with closing(sqlite3.connect(source, timeout=30.0)) as database:
        database.execute("VACUUM INTO ?", (str(target),))


def _mark_older_in_doubt(target: Path) -> None:
    with closing(sqlite3.connect(target)) as copy, copy:
        for statement in _OLDER_IN_DOUBT:
            copy.execute(statement)


_LONGEST = 3600.0
"""Seconds that a large table may take."""
_PATIENCE = 30.0


async def clear_traces(url: str) -> bool:
    """Clears deleted data from the files; false if a reader or an error prevents it. Raises ConfigError, StoreError."""
    file = await asyncio.to_thread(existing_file, url)
    if file is not None:
        return await asyncio.to_thread(_rewrite, file)
    await _vacuum(url)
    return True


def _rewrite(file: Path) -> bool:
    """Rewrites the file without deleted data, and empties its write-ahead log."""
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
