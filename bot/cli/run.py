"""`pagehand run`, `pagehand web` and `pagehand worker` run the bot, or a part of it."""

import asyncio
import logging
from collections.abc import Mapping

from bot.app import application
from bot.app.application import Role
from bot.app.settings.config import load, setting_names
from bot.cli.database import location_faults
from bot.queue.engine import sqlite_path
from bot.runtime.logging import configure_logging
from bot.store.files import hold_file

logger = logging.getLogger(__name__)


def run_bot(command: str, environ: Mapping[str, str]) -> None:
    """Runs until SIGTERM or Ctrl-C.

    Raises ConfigError with everything wrong with the settings, including the database's location; PagehandError.
    """
    role = Role(command)
    config = load(environ, further=location_faults(environ, shared_by="" if role is Role.RUN else command))
    configure_logging(config.log_level, config.secrets, config.log_format)
    for words in setting_names(environ).warnings(environ):
        logger.warning(words)
    with hold_file(sqlite_path(config.database_url.get_secret_value())):
        asyncio.run(application.run(config, role))
