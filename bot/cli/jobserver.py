"""`pagehand jobserver`."""

import asyncio
from collections.abc import Mapping, MutableMapping

import click

from bot.errors import CannotStart
from bot.jobserver.agents.check import check_editor
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


def check_job_server(environ: Mapping[str, str]) -> int:
    """Prints a line for each thing that is looked at; returns 1 where something is missing. Raises ConfigError."""
    settings = JobServerSettings.from_environment(environ)
    configure_logging("WARNING", [settings.api_key.get_secret_value()])
    return asyncio.run(_print_findings(settings, environ))


async def _print_findings(settings: JobServerSettings, environ: Mapping[str, str]) -> int:
    exit_code = 0
    async for finding in check_editor(settings, environ):
        click.echo(f"{'ok' if finding.is_good else 'FAIL':<5}{finding.name:<10} {finding.words}")
        exit_code = exit_code if finding.is_good else 1
    return exit_code
