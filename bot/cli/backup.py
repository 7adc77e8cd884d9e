"""The commands about a SQLite file: `pagehand backup` copies it while the bot runs, `pagehand compact` shrinks it."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from bot.app.settings.config import database_url
from bot.cli.restored import mark_in_doubt
from bot.domain.last_times import LastTime
from bot.errors import SchemaMismatch
from bot.store.backup import backup
from bot.store.database.files import compact
from bot.store.store import open_store

_DATED = re.compile(r"pagehand-[0-9]{8}T[0-9]{6}Z\.sqlite3")


def back_up_database(environ: Mapping[str, str], named: str, keep: int | None, *, now: datetime) -> None:
    """Copies the database to a new file or, in a directory, to one that is named by date. Then deletes all but the
    `keep` newest of such files. Raises click.UsageError; ConfigError, StoreError.
    """
    target = Path(named)
    is_directory = target.is_dir()
    if keep is not None and not is_directory:
        raise click.UsageError(f"--keep needs a directory, and {target} is none.")
    file = target / f"pagehand-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.sqlite3" if is_directory else target
    if file.exists():
        raise click.UsageError(f"{file} already exists: name a new file.")
    asyncio.run(_back_up_and_note(database_url(environ), file))
    click.echo(f"Copied to {file}.")
    for each in _older(file)[keep - 1 :] if keep is not None else ():
        each.unlink()
        click.echo(f"Deleted {each}.")


def _older(newest: Path) -> list[Path]:
    """Returns the other files beside it that are named by date, the newest first."""
    dated = (each for each in newest.parent.iterdir() if _DATED.fullmatch(each.name) and each.name != newest.name)
    return sorted((each for each in dated if each.is_file() and not each.is_symlink()), reverse=True)


async def _back_up_and_note(url: str, file: Path) -> None:
    await back_up(url, file)
    with suppress(SchemaMismatch):  # an older schema cannot record it, and is copied before it is migrated
        store = await open_store(url)
        try:
            await store.transact(lambda tx: tx.condition.note_last_times([LastTime.BACKUP]))
        finally:
            await store.close()


async def back_up(url: str, file: Path) -> None:
    """Copies a database to a new file, in which all open work is marked as in doubt. Raises ConfigError, StoreError."""
    await backup(url, file, mark_in_doubt=mark_in_doubt)


def compact_database(environ: Mapping[str, str]) -> str:
    """Compacts the database of DATABASE_URL, and returns a summary. Raises ConfigError, StoreError."""
    done = asyncio.run(compact(database_url(environ)))
    return f"Compacted: {done.before / 1e6:,.1f} MB before, {done.after / 1e6:,.1f} MB now."
