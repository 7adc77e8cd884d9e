"""`pagehand jobserver`."""

import asyncio
from collections.abc import MutableMapping

from bot.errors import CannotStart
from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.own_process import close_to_others, forget_secrets
from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings
from bot.runtime.logging import configure_logging


def run_job_server(environ: MutableMapping[str, str]) -> None:
    """Runs until SIGTERM or Ctrl-C, and removes its secrets from `environ`.

    Raises ConfigError; CannotStart in the job server's own words.
    """
    close_to_others()
    settings = JobServerSettings.from_environment(environ)
    forget_secrets(environ)
    configure_logging("INFO", [settings.api_key.get_secret_value(), *settings.github_secrets])
    try:
        asyncio.run(JobServer(settings).serve_forever())
    except JobServerError as error:
        raise CannotStart(str(error)) from None
