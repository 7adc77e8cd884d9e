"""Compacting a SQLite database: its file keeps the space of what was deleted, and uses it again for new rows."""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bot.errors import ConfigError, StoreUnavailable
from bot.store.database.errors import classify
from bot.store.database.file_lock import hold_file
from bot.store.database.in_use import is_in_use
from bot.store.database.url import existing_file

_PATIENCE = 2.0
"""Seconds to wait for another program's lock."""
_NOT_SQLITE = (
    "DATABASE_URL is not a SQLite database. PostgreSQL reuses space by itself; to give it back to the disk, stop "
    "Pagehand and run VACUUM FULL."
)
_TEMPORARY = ("/var/tmp", "/usr/tmp", "/tmp")  # noqa: S108 - SQLite's own list


@dataclass(frozen=True)
class Compacted:
    """The size of the file before and after, in bytes."""

    before: int
    after: int


async def compact(url: str) -> Compacted:
    """Rewrites a SQLite database without unused space. If it is interrupted, the database is as before.

    Raises:
        ConfigError: It is not an existing SQLite database.
        StoreUnavailable: A process is using it, there is too little room, or it cannot be written.
    """
    file = await asyncio.to_thread(existing_file, url)
    if file is None:
        raise ConfigError([_NOT_SQLITE])
    if not all([await asyncio.to_thread(os.access, each, os.W_OK) for each in (file, file.parent)]):
        raise StoreUnavailable(f"{file} and its directory must be writable. Run this as the user that runs Pagehand.")
    if await is_in_use(url):
        raise StoreUnavailable("a process is using this database. Stop Pagehand, and try again.")
    return await asyncio.to_thread(_compact, file)


def _compact(file: Path) -> Compacted:
    before = file.stat().st_size
    _check_room(file, before)
    try:
        with (
            hold_file(str(file)),
            closing(sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)) as database,
        ):
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        failure = classify(error)
        raise (failure.error if failure else error) from None
    return Compacted(before, file.stat().st_size)


def _check_room(file: Path, size: int) -> None:
    """SQLite writes a copy to a temporary directory, and then all of it to the log beside the database."""
    temporary = _temporary_directory(file)
    same = temporary.stat().st_dev == file.parent.stat().st_dev
    elsewhere = " Or set SQLITE_TMPDIR to a directory on another disk."
    for directory, needed, otherwise in (
        (file.parent, 2 * size if same else size, elsewhere if same else ""),
        (temporary, size, elsewhere),
    ):
        free = shutil.disk_usage(directory).free
        if free < needed:
            raise StoreUnavailable(
                f"compacting may need {needed / 1e6:,.1f} MB in {directory}, and {free / 1e6:,.1f} MB are free there. "
                f"Make room.{otherwise}"
            )


def _temporary_directory(file: Path) -> Path:
    named = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), *_TEMPORARY)
    found = (Path(each) for each in named if each and os.access(each, os.W_OK | os.X_OK))
    return next(found, file.parent)
