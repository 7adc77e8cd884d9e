"""A copy of a running SQLite database."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from bot.errors import ConfigError, StoreUnavailable

_IN_DOUBT = (
    "UPDATE notices SET uncertain = 1 WHERE due_at IS NOT NULL",
    "UPDATE requests SET state = 'sending', claimed_by = 'backup', claimed_until = 0 WHERE state = 'waiting'",
    "UPDATE notices SET revision = revision + 2 WHERE kind = 'mark'",
)
"""What is open in the copy may be said and sent by the time it is restored: it is looked up, or asked about, first. And
a reply may carry any mark by then.
"""


async def backup(url: str, target: Path) -> None:
    """Copies the SQLite database at `url` into a new file, while it is in use.

    Raises ConfigError where it is another database or the file is there already, StoreUnavailable where it fails.
    """
    try:
        address = make_url(url)
    except ArgumentError:
        address = None
    if address is None or address.get_backend_name() != "sqlite" or not address.database:
        raise ConfigError(["DATABASE_URL is not a SQLite database: for PostgreSQL, use pg_dump."])
    source = Path(address.database)
    if not await asyncio.to_thread(source.is_file):
        raise ConfigError([f"There is no database at {source}."])
    if await asyncio.to_thread(target.exists):
        raise ConfigError([f"{target} is there already: name a new file."])
    try:
        await asyncio.to_thread(_copy, source, target)
    except sqlite3.Error as error:
        raise StoreUnavailable(f"The copy failed: {error}.") from None


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source, timeout=30.0)) as database:
        database.execute("VACUUM INTO ?", (str(target),))
    with closing(sqlite3.connect(target)) as copy, copy:
        for statement in _IN_DOUBT:
            copy.execute(statement)
