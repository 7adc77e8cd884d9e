"""A database's files: who uses them, and clearing deleted data.

Only one process at a time works on a SQLite database: the kernel releases its lock when the process ends. The file
keeps the space of what was deleted, and uses it again for new rows.
"""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import text

from bot.errors import StoreUnavailable
from bot.queue.engine import DatabaseConnection, existing_file, run_in
from bot.queue.errors import classify
from bot.queue.postgres import APPLICATION_NAME
from bot.store.schema.tables import metadata


@contextmanager
def hold_file(path: str | None) -> Iterator[None]:
    """Holds a lock beside a SQLite database's file; does nothing without one (PostgreSQL serves several processes).

    Raises:
        StoreUnavailable: Another process holds it.
    """
    if path is None:
        yield
        return
    descriptor = None
    with suppress(OSError):  # if the lock's file cannot be made, neither can the database's, whose error says more
        descriptor = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        if descriptor is not None:
            _lock(descriptor, path)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(descriptor: int, path: str) -> None:
    import fcntl  # noqa: PLC0415 - missing on Windows, where the commands must still be able to say so

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        process = f" (process {holder})" if holder.isdigit() else ""
        raise StoreUnavailable(
            f"another process of Pagehand{process} is using {path}, and a SQLite database serves one. Stop that one "
            "first; for several, set DATABASE_URL to a PostgreSQL database."
        ) from None
    except OSError:
        return  # a file system without locks
    with suppress(OSError):  # a full disk: the lock is held all the same, and the database's own error says more
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


RECENT = 60.0
"""Seconds. Each instance looks for due work more often. Behind a pooler, connections outlive instances."""
_PATIENCE, _PAUSE = 2.0, 0.1
"""Seconds to wait for another program's lock. And a server notices a closed connection a moment later."""
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
    return await run_in(url, _has_others, autocommit=True)


async def _has_others(connection: DatabaseConnection) -> bool:
    clock = asyncio.get_running_loop().time
    end = clock() + _PATIENCE
    while True:
        found = await connection.execute(_OTHERS, {"name": APPLICATION_NAME, "recent": RECENT})
        if not found.scalar_one():
            return False
        if clock() >= end:
            return True
        await asyncio.sleep(_PAUSE)


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


_LONGEST_VACUUM = 3600.0
"""Seconds that a large table may take."""


async def clear_traces(url: str) -> bool:
    """Clears deleted data from the files; false if a reader or an error prevents it. Raises ConfigError, StoreError."""
    file = await asyncio.to_thread(existing_file, url)
    if file is not None:
        return await asyncio.to_thread(_rewrite, file)
    await run_in(url, _vacuum, statement_timeout=_LONGEST_VACUUM, autocommit=True)
    return True


def _rewrite(file: Path) -> bool:
    """Rewrites the file without deleted data, and empties its write-ahead log."""
    with closing(sqlite3.connect(file, timeout=30.0, isolation_level=None)) as database:
        try:
            database.execute("VACUUM")
            busy, _, _ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error:
            return False
    return not busy


async def _vacuum(connection: DatabaseConnection) -> None:
    for table in metadata.sorted_tables:
        await connection.execute(text(f"VACUUM {table.name}"))
