"""`pagehand migrate` brings the database to the current schema, or says what it would do."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from bot.app.settings.config import database_url
from bot.cli.database_location import location_faults
from bot.errors import ConfigError
from bot.store.database.engine import sqlite_path
from bot.store.schema.migration import WORDS, SchemaReport, SchemaState, migrate, schema_report

TELL_EVERY = 10.0
"""Seconds between two signs of life."""


def migrate_database(environ: Mapping[str, str]) -> None:
    """Migrates the database of DATABASE_URL, and prints signs of life. Raises ConfigError, StoreError."""
    url = database_url(environ)
    if faults := location_faults(environ):
        raise ConfigError(faults)
    asyncio.run(_migrate(url))


def check_migration(environ: Mapping[str, str]) -> int:
    """Prints what `migrate` would do, and changes nothing. Returns the exit code: 0 if this version can work with the
    database as it is, otherwise 1. Raises ConfigError, StoreError.
    """
    url = database_url(environ)
    try:
        path = sqlite_path(url)
    except ValueError as error:
        raise ConfigError([f"DATABASE_URL {error}."]) from None
    if path is not None and not Path(path).exists():
        click.echo(f"There is no database yet: `pagehand migrate` or `pagehand run` makes {path}.")
        return 1
    report = asyncio.run(schema_report(url))
    click.echo(in_words(report))
    return 0 if report.state.usable else 1


def in_words(report: SchemaReport) -> str:
    """Returns how the database is, and what `migrate` would do."""
    if report.state is SchemaState.CURRENT:
        return f"The database is up to date: its schema is {report.version}."
    if report.state is not SchemaState.OLDER:
        return WORDS[report.state]
    meanwhile = (
        "Processes of the version before can go on meanwhile."
        if report.expands
        else "Stop every process first: the version before cannot work with the new tables."
    )
    steps = "\n".join(f"  {step.version}  {step.title}" for step in report.missing)
    return f"The database needs a migration: its schema is {report.version}.\n{steps}\nMake a backup. {meanwhile}"


async def _migrate(url: str) -> None:
    telling = asyncio.create_task(_report_progress(time.monotonic))
    try:
        await migrate(url)
    finally:
        telling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await telling


async def _report_progress(monotonic: Callable[[], float]) -> None:
    began = monotonic()
    while True:
        await asyncio.sleep(TELL_EVERY)
        click.echo(f"Migrating for {monotonic() - began:.0f} s so far. With a million jobs this takes minutes.")
