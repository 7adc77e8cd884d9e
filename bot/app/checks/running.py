"""Runs checks concurrently, each with a time limit: a slow or failing one does not affect the others."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from bot.domain.findings import Finding

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
    except Exception as error:
        logger.debug("the check %s failed", check.name, exc_info=True)
        return [Finding.not_checked(check.name, f"The check itself failed ({type(error).__name__}): please report it.")]
