"""The checks of a setup: all of them for `pagehand doctor` and the running bot, one at a time for `pagehand setup`."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.app.checks.code_hosts import check_code_host, name_of
from bot.app.checks.database import check_database
from bot.app.checks.job_api import check_job_api
from bot.app.checks.settings import SETTINGS, check_settings
from bot.app.checks.slack import check_app_token, check_bot, check_channels
from bot.app.settings.config import CONFIGURATION_TOKEN, Config
from bot.domain.findings import Finding, FindingStatus
from bot.errors import ConfigError
from bot.runtime.rotating_secrets import RotatingSecret
from bot.slack.sending.web_api import SlackClient, new_session

logger = logging.getLogger(__name__)

LIMIT = 10.0
"""Seconds that a check may take."""


@dataclass(frozen=True)
class Check:
    """A check with the name under which it is reported if it does not finish. `limit` is in seconds."""

    name: str
    run: Callable[[], Awaitable[Sequence[Finding]]]
    limit: float = LIMIT


async def run_all(checks: Iterable[Check]) -> tuple[Finding, ...]:
    """Returns the findings of the checks, in order."""
    found = await asyncio.gather(*map(_bounded, checks))
    return tuple(chain.from_iterable(found))


async def _bounded(check: Check) -> Sequence[Finding]:
    """Cancels a check at its limit without waiting for its end: closing a connection that hangs can take seconds."""
    running = asyncio.create_task(_findings(check), name=f"the check {check.name}")
    try:
        done, _ = await asyncio.wait({running}, timeout=check.limit)
    finally:
        running.cancel()
    if done:
        return running.result()
    why = "What does not answer cannot be worked with."
    fix = "Look at the network between the two, and run this again."
    found = f"There was no answer within {check.limit:.0f} s."
    return [Finding.error(check.name, found, why=why, fix=fix, passing=True)]


async def _findings(check: Check) -> Sequence[Finding]:
    try:
        return await check.run()
    except ConfigError as error:
        return [Finding.error(check.name, f"{error}.", why="Nothing is reached that way.", fix="Correct it.")]
    except Exception as error:
        logger.debug("the check %s failed", check.name, exc_info=True)
        return [Finding.not_checked(check.name, f"The check itself failed ({type(error).__name__}): please report it.")]


def checks_of(config: Config, session: aiohttp.ClientSession, *, now: Callable[[], float] = time.time) -> list[Check]:
    """Returns the checks of everything that the settings name. `now` returns the time, in seconds since the epoch."""
    bot, app_token = _client(config, session, config.slack_bot_token), config.slack_app_token
    channel_ids = config.known_projects.channel_ids | config.allowed_channels
    database = partial(
        check_database,
        config.database_url.get_secret_value(),
        command=config.command,
        by_socket=app_token is not None,
        now=now,
    )
    checks = [
        Check("slack", partial(check_bot, bot, now=now, left_out=config.left_out)),
        Check("channels", partial(check_channels, bot, channel_ids)),
        Check("database", database),
        *(Check(f"job_api.{each.project.name}", partial(check_job_api, each)) for each in config.projects),
        *(Check(name_of(each), partial(check_code_host, each, session)) for each in config.code_hosts),
    ]
    if app_token is not None:
        app = _client(config, session, app_token)
        checks.insert(1, Check("slack.app_token", partial(check_app_token, app, bot)))
    return checks


async def examine(
    environ: Mapping[str, str],
    *,
    configuration_token: str = "",
    further: Iterable[str] = (),
    more: Sequence[Check] = (),
    now: Callable[[], float] = time.time,
) -> tuple[Finding, ...]:
    """Checks the settings and, as far as they are usable, everything that they name. The findings contain no secrets.

    Args:
        environ: The environment with the settings.
        configuration_token: Gives access to the app's manifest; if empty, that is not checked.
        further: Sentences about other faults of the settings.
        more: Additional checks.
        now: Returns the time, in seconds since the epoch.
    """
    read = check_settings(environ, further)
    findings = list(read.findings)
    hidden = [configuration_token]
    if read.config is None:
        rest = await run_all(more)
        return tuple(without_secrets([*findings, *rest], hidden))
    async with new_session() as session:
        checks = checks_of(read.config, session, now=now)
        if configuration_token:
            from bot.app.checks.manifest import check_manifest  # noqa: PLC0415 - only doctor looks at it

            bot = _client(read.config, session, read.config.slack_bot_token)
            configuration = _client(read.config, session, configuration_token)
            checks.append(Check("manifest", partial(check_manifest, bot, configuration, read.config)))
        missing = {check: sorted(_NEEDS[_kind(check)] & read.unusable) for check in checks}
        findings += (
            Finding.not_checked(_kind(check), f"It needs {' and '.join(names)}.")
            for check, names in missing.items()
            if names
        )
        findings += await run_all([*(check for check, names in missing.items() if not names), *more])
    if not configuration_token:
        fix = f"Set {CONFIGURATION_TOKEN}: at api.slack.com/apps, under Your App Configuration Tokens, generate one."
        findings.append(Finding.not_checked("manifest", "The app's manifest was not looked at.", fix=fix))
    return tuple(without_secrets(findings, [*read.config.secrets, *hidden]))


async def examine_part(environ: Mapping[str, str], name: str) -> Sequence[Finding]:
    """Runs the check of this name (`job_api`: those of all projects), if the settings that it needs can be read.

    Returns what is found, and what is wrong with these settings; it may contain secrets.
    """
    read = check_settings(environ)
    needed = {f"{SETTINGS}.{setting}" for setting in _NEEDS[name]}
    faults = [replace(each, why="", fix="") for each in read.findings if each.is_fault and each.check in needed]
    if any(each.status is FindingStatus.ERROR for each in faults):
        return faults
    if read.config is None:
        why, fix = "Nothing can be checked with them.", "`pagehand doctor` lists them."
        return [Finding.error(SETTINGS, "Other settings are wrong.", why=why, fix=fix)]
    async with new_session() as session:
        checks = checks_of(read.config, session)
        return [*faults, *await run_all(each for each in checks if _kind(each) == name)]


def without_secrets(findings: Iterable[Finding], secrets: Iterable[str]) -> Iterable[Finding]:
    """Returns the findings with asterisks instead of secrets that foreign answers may contain."""
    hidden = sorted(filter(None, secrets), key=len, reverse=True)

    def masked(text: str) -> str:
        for secret in hidden:
            text = text.replace(secret, "***")
        return text

    return (replace(each, found=masked(each.found), why=masked(each.why), fix=masked(each.fix)) for each in findings)


def _client(config: Config, session: aiohttp.ClientSession, token: RotatingSecret | str) -> AsyncWebClient:
    return SlackClient(token, session, base_url=f"{config.slack_api_url}/")


_NEEDS: Mapping[str, frozenset[str]] = {
    "slack": frozenset({"SLACK_BOT_TOKEN", "SLACK_API_URL"}),
    "channels": frozenset({"SLACK_BOT_TOKEN", "SLACK_API_URL", "PAGEHAND_ALLOWED_CHANNELS", "PAGEHAND_PROJECTS"}),
    "manifest": frozenset({"SLACK_BOT_TOKEN", "SLACK_API_URL"}),
    "slack.app_token": frozenset({"SLACK_APP_TOKEN", "SLACK_API_URL"}),
    "slack.signing_secret": frozenset({"SLACK_SIGNING_SECRET"}),
    "database": frozenset({"DATABASE_URL"}),
    "code_host": frozenset({"CODE_HOST_URL", "CODE_HOST_TOKEN", "PAGEHAND_PROJECTS"}),
    "job_api": frozenset({"JOB_API_URL", "JOB_API_KEY", "JOB_API_PROJECT", "JOB_API_GET_PATH", "PAGEHAND_PROJECTS"}),
}


def _kind(check: Check) -> str:
    return check.name if check.name in _NEEDS else check.name.partition(".")[0]
