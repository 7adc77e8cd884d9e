"""Where the database is, and the commands that change its form: `pagehand migrate`, `pagehand compact`."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import click
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from bot.app.settings.config import database_url
from bot.errors import ConfigError
from bot.store.database.engine import sqlite_path
from bot.store.database.files import compact
from bot.store.schema.migration import WORDS, SchemaReport, SchemaState, migrate, schema_report

PLATFORMS = {
    "DYNO": ("Heroku", False),  # devcenter.heroku.com/articles/dyno-startup-behavior, /articles/dynos
    # cloud.google.com/run/docs/container-contract: files are in memory; volumes are network file systems or buckets,
    # on which SQLite's locks do not work
    "K_SERVICE": ("Google Cloud Run", False),
    "RENDER": ("Render", True),  # render.com/docs/environment-variables, /docs/disks
    "FLY_APP_NAME": ("Fly.io", True),  # fly.io/docs/reference/runtime-environment, /docs/volumes
    "RAILWAY_ENVIRONMENT_ID": ("Railway", True),  # docs.railway.com/reference/variables, /reference/volumes
}
"""Hosting platforms where a restart deletes the files of a process, by the variable that each always sets: the name,
and whether there are persistent disks.
"""
_POSTGRES = "postgresql://USER:PASSWORD@HOST/NAME"


def location_faults(environ: Mapping[str, str], shared_by: str = "") -> list[str]:
    """Returns why the database cannot be where it is; nothing if the setting cannot be read, which `load` reports.
    `shared_by` is the command that shares it with other processes, if any.
    """
    try:
        url = database_url(environ)
    except ConfigError:
        return []
    unshared = unshared_file_fault(url, shared_by) if shared_by else None
    fault = unshared or lost_file_fault(url, environ)
    return [fault] if fault else []


def unshared_file_fault(url: str, command: str) -> str | None:
    """Returns why processes that work together cannot use this database; None if they can."""
    if _file(url) is None:
        return None
    return (
        f"DATABASE_URL names a file (the default), but `pagehand {command}` shares its database with other processes: "
        f"set it to a PostgreSQL database, {_POSTGRES}. With a file, use `pagehand run`, which does everything in one "
        "process."
    )


def lost_file_fault(url: str, environ: Mapping[str, str]) -> str | None:
    """Returns why the platform would delete this database; None if it is kept."""
    file = _file(url)
    name, has_disks = next((platform for variable, platform in PLATFORMS.items() if environ.get(variable)), ("", False))
    if file is None or not name or (has_disks and _on_disk(file)):
        return None
    disk = ", or put the file on a persistent disk of this service: sqlite:////PATH/OF/THE/DISK/pagehand.sqlite3"
    return (
        f"DATABASE_URL names a file (the default), and {name} deletes files when it restarts a process: all "
        "acknowledged requests would be lost. Set it to a PostgreSQL database, "
        f"{_POSTGRES}{disk if has_disks else ''}."
    )


def _file(url: str) -> Path | None:
    if not url.lower().startswith("sqlite"):
        return None
    try:
        return Path(make_url(url).database or "").resolve()
    except ArgumentError:
        return Path.cwd()  # certainly a file; opening the database reports the malformed URL


def _on_disk(file: Path) -> bool:
    """Returns whether the file is in a file system that is mounted below the process's root."""
    directory = next(parent for parent in file.parents if parent.exists())
    return directory.stat().st_dev != Path("/").stat().st_dev


def migrate_database(environ: Mapping[str, str]) -> None:
    """Migrates the database of DATABASE_URL. Raises ConfigError, StoreError."""
    url = database_url(environ)
    if faults := location_faults(environ):
        raise ConfigError(faults)
    asyncio.run(migrate(url))


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


def compact_database(environ: Mapping[str, str]) -> str:
    """Compacts the database of DATABASE_URL, and returns a summary. Raises ConfigError, StoreError."""
    done = asyncio.run(compact(database_url(environ)))
    return f"Compacted: {done.before / 1e6:,.1f} MB before, {done.after / 1e6:,.1f} MB now."
