"""`pagehand run`, `pagehand web` and `pagehand worker` run the bot, or a part of it."""

import asyncio
import logging
from collections.abc import Iterator, Mapping

from bot.app import application
from bot.app.application import Role
from bot.app.settings.config import database_url, load, setting_names
from bot.cli.database_location import lost_file_fault, mounted_file_systems, unshared_file_fault
from bot.errors import ConfigError
from bot.runtime.logging import configure_logging
from bot.store.database.file_lock import hold_file
from bot.store.database.url import sqlite_path

logger = logging.getLogger(__name__)


def run_bot(command: str, environ: Mapping[str, str]) -> None:
    """Runs until SIGTERM or Ctrl-C.

    Raises ConfigError with everything wrong with the settings, including the database's location; PagehandError.
    """
    role = Role(command)
    config = load(environ, further=_location_faults(role, environ))
    configure_logging(config.log_level, config.secrets, config.log_format)
    for words in setting_names(environ).warnings(environ):
        logger.warning(words)
    with hold_file(sqlite_path(config.database_url.get_secret_value())):
        asyncio.run(application.run(config, role))


def _location_faults(role: Role, environ: Mapping[str, str]) -> Iterator[str]:
    """Yields why the database cannot be where it is. An unreadable setting yields nothing: `load` reports it."""
    try:
        url = database_url(environ)
    except ConfigError:
        return
    unshared = None if role is Role.RUN else unshared_file_fault(url, role.value)
    if fault := unshared or lost_file_fault(url, environ, mounted_file_systems()):
        yield fault
