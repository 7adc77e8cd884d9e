"""`pagehand jobserver`."""

import asyncio
from collections.abc import Mapping

from bot.errors import CannotStart
from bot.jobserver.errors import JobServerError
from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings
from bot.runtime.logging import configure_logging


def run_job_server(environ: Mapping[str, str]) -> None:
    """Runs until SIGTERM or Ctrl-C. Raises ConfigError; CannotStart in the job server's own words."""
    settings = JobServerSettings.from_environment(environ)
    configure_logging("INFO", [settings.api_key.get_secret_value(), *settings.github_secrets])
    try:
        asyncio.run(JobServer(settings).serve_forever())
    except JobServerError as error:
        raise CannotStart(str(error)) from None
