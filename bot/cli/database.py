"""Where the database is, and `pagehand migrate`."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from bot.app.settings.config import database_url
from bot.errors import ConfigError
from bot.store.schema.migration import migrate

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
    """Returns why the database cannot be where it is: processes that work together cannot use a file, and the platform
    would delete it; nothing if the setting cannot be read, which `load` reports. `shared_by` is the command that shares
    it with other processes, if any.
    """
    try:
        file = _file(database_url(environ))
    except ConfigError:
        return []
    name, has_disks = next((platform for variable, platform in PLATFORMS.items() if environ.get(variable)), ("", False))
    if file is None:
        return []
    if shared_by:
        fault = (
            f"DATABASE_URL names a file (the default), but `pagehand {shared_by}` shares its database with other "
            f"processes: set it to a PostgreSQL database, {_POSTGRES}. With a file, use `pagehand run`, which does "
            "everything in one process."
        )
        return [fault]
    if not name or (has_disks and _on_disk(file)):
        return []
    disk = ", or put the file on a persistent disk of this service: sqlite:////PATH/OF/THE/DISK/pagehand.sqlite3"
    fault = (
        f"DATABASE_URL names a file (the default), and {name} deletes files when it restarts a process: all "
        f"acknowledged requests would be lost. Set it to a PostgreSQL database, {_POSTGRES}{disk if has_disks else ''}."
    )
    return [fault]


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
