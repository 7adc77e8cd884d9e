"""`pagehand migrate` brings the database to the current schema."""

import asyncio
from collections.abc import Mapping

from bot.app.settings.config import database_url
from bot.cli.database_location import lost_file_fault, mounted_file_systems
from bot.errors import ConfigError
from bot.store.schema.migration import migrate


def migrate_database(environ: Mapping[str, str]) -> None:
    """Migrates the database of DATABASE_URL. Raises ConfigError, StoreError."""
    url = database_url(environ)
    if fault := lost_file_fault(url, environ, mounted_file_systems()):
        raise ConfigError([fault])
    asyncio.run(migrate(url))
