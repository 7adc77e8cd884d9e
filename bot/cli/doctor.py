"""`pagehand doctor` checks the whole setup."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec

import click

from bot import __version__
from bot.app.checks.whole import Check, examine
from bot.app.settings.config import CONFIGURATION_TOKEN
from bot.cli.database import location_faults
from bot.cli.setup_dialogue import COLORS
from bot.cli.starting import BOT_FILE, HOW_TO_BEGIN, JOB_SERVER_FILE, environment, is_set_up
from bot.domain.findings import Finding, FindingStatus
from bot.errors import ConfigError
from bot.runtime.settings import read_variable

JOB_SERVER = "job_server"
_REPOSITORY, _CONFIG = "PAGEHAND_JOBSERVER_REPOSITORY", "PAGEHAND_JOBSERVER_CONFIG"
_JOB_SERVER_LIMIT = 120.0
"""Seconds. An agent is started, and asked a question."""


def run_doctor(*, as_json: bool) -> int:
    """Prints the findings about the settings of the environment and its files, and returns 1 if any is an error.

    Raises ConfigError if the file with the configuration token cannot be read.
    """
    logging.basicConfig(level=logging.CRITICAL)  # faults are printed, and only once
    environ = environment(BOT_FILE, JOB_SERVER_FILE)
    return asyncio.run(_examine(environ, read_variable(CONFIGURATION_TOKEN, environ), as_json=as_json))


async def _examine(environ: Mapping[str, str], token: str, *, as_json: bool) -> int:
    further, more = location_faults(environ), [Check(JOB_SERVER, partial(_job_server, environ), _JOB_SERVER_LIMIT)]
    findings = await examine(environ, configuration_token=token, further=further, more=more)
    # Printed before the event loop closes: that waits for threads, such as a look-up of a host that nobody answers.
    if as_json:
        click.echo(in_json(findings))
    else:
        _print(findings)
        if not is_set_up(environ):
            click.echo(HOW_TO_BEGIN)
    return 1 if any(finding.status is FindingStatus.ERROR for finding in findings) else 0


def in_json(findings: Sequence[Finding]) -> str:
    """Returns a document: `version`, `ok`, and `findings` with `check`, `status`, `found`, `why` and `fix`."""
    fields = [{name: value for name, value in asdict(each).items() if name != "passing"} for each in findings]
    ok = not any(each.status is FindingStatus.ERROR for each in findings)
    return json.dumps({"version": __version__, "ok": ok, "findings": fields}, indent=2, ensure_ascii=False)


def _print(findings: Sequence[Finding]) -> None:
    words = {status: status.replace("_", " ") for status in COLORS}
    width = max(map(len, words.values()))
    for finding in findings:
        sign = click.style(f"{words[finding.status]:<{width}}", fg=COLORS[finding.status])
        click.echo(f"{sign}  {finding.check}: {finding.found}")
        for line in filter(None, (finding.why, finding.fix)):
            click.echo(f"{' ' * width}  {line}")
    counts = Counter(finding.status for finding in findings)
    click.echo("\n" + ", ".join(f"{word}: {counts[status]}" for status, word in words.items()))


async def _job_server(environ: Mapping[str, str]) -> Sequence[Finding]:
    """Checks the job server if its settings are here."""
    if not any(environ.get(name) for name in (_REPOSITORY, f"{_REPOSITORY}_FILE", _CONFIG)):
        return []
    if find_spec("acp") is None:
        found = "The packages of the job server are not installed here."
        return [Finding.not_checked(JOB_SERVER, found, fix="Run `pagehand jobserver --check` where it runs.")]
    from bot.cli.jobserver import find_faults  # noqa: PLC0415 - its packages may be missing

    try:
        return [found async for found in find_faults(environ)]
    except ConfigError as error:
        why, fix = "The job server does not start.", "Set it in the environment of the job server."
        return [Finding.error(f"{JOB_SERVER}.settings", fault, why=why, fix=fix) for fault in error.faults]
