"""`pagehand backup` copies a SQLite database while the bot runs."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import click

from bot.app.settings.config import database_url
from bot.cli.restored import put_in_doubt
from bot.store.database.backup import backup


def back_up_database(environ: Mapping[str, str], file: str) -> None:
    """Copies the database to a new file. Raises click.UsageError if the file exists; ConfigError, StoreError."""
    if Path(file).exists():
        raise click.UsageError(f"{file} already exists: name a new file.")
    asyncio.run(back_up(database_url(environ), Path(file)))


async def back_up(url: str, file: Path) -> None:
    """Copies a database to a new file, in which all open work is marked as in doubt. Raises ConfigError, StoreError."""
    await backup(url, file, put_in_doubt=put_in_doubt)
