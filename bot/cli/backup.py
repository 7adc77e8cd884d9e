"""The commands about a SQLite file: `pagehand backup` copies it while the bot runs, `pagehand compact` shrinks it."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from bot.app.settings.config import database_url
from bot.cli.restored import mark_in_doubt
from bot.domain.last_times import LastTime
from bot.errors import SchemaMismatch
from bot.store.database.backup import backup
from bot.store.database.compaction import compact
from bot.store.store import open_store


def back_up_database(environ: Mapping[str, str], file: str) -> None:
    """Copies the database to a new file. Raises click.UsageError if the file exists; ConfigError, StoreError."""
    if Path(file).exists():
        raise click.UsageError(f"{file} already exists: name a new file.")
    asyncio.run(_back_up_and_note(database_url(environ), Path(file)))


async def _back_up_and_note(url: str, file: Path) -> None:
    await back_up(url, file)
    with suppress(SchemaMismatch):  # an older schema cannot record it, and is copied before it is migrated
        store = await open_store(url)
        try:
            await store.transact(lambda tx: tx.last_times.note([LastTime.BACKUP]))
        finally:
            await store.close()


async def back_up(url: str, file: Path) -> None:
    """Copies a database to a new file, in which all open work is marked as in doubt. Raises ConfigError, StoreError."""
    await backup(url, file, mark_in_doubt=mark_in_doubt)


def compact_database(environ: Mapping[str, str]) -> str:
    """Compacts the database of DATABASE_URL, and returns a summary. Raises ConfigError, StoreError."""
    done = asyncio.run(compact(database_url(environ)))
    return f"Compacted: {done.before / 1e6:,.1f} MB before, {done.after / 1e6:,.1f} MB now."
