"""Breaks parts of the setup one after the other; each has to be reported to the administrator in Slack."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from support.chaos.process_world import ProcessWorld
from support.oracles.notice_keys import all_keys
from support.oracles.promises import Fault

from bot.app.checks.running import Check
from bot.app.checks.watch import SetupWatch
from bot.domain.findings import Finding
from bot.slack.sending.scopes import MissingScopes
from bot.store.store import open_store

EVERY = 2.0
"""Seconds, approximately, from one fault to the next."""


async def break_parts(world: ProcessWorld, over: asyncio.Event) -> None:
    """Breaks one part after the other. The instance that detects it is not one of those that are
    killed: they have to report it.
    """
    store = await open_store(world.database_url)
    watch = SetupWatch(
        (),
        store,
        tells=True,
        secrets=(),
        missing_scopes=MissingScopes(),
        token_refused=asyncio.Event(),
        monotonic=asyncio.get_running_loop().time,
    )
    try:
        await watch.look([Check("part", _well)])
        while not over.is_set():
            await asyncio.sleep(world.rng.uniform(0.5, 1.5) * EVERY)
            broken = f"part.{len(world.broken_parts) + 1}"
            await watch.look([Check(broken, partial(_broken, broken))])
            world.broken_parts.append(broken)
    finally:
        await store.close()


def faults_reported(world: ProcessWorld) -> Iterator[Fault]:
    """Returns how often each was reported to the administrator."""
    told = Counter(key.partition("/")[0] for key in all_keys(world.workspace))
    yield from (Fault(part, told[part]) for part in world.broken_parts)


async def _well() -> Sequence[Finding]:
    return [Finding.ok("part", "All is well.")]


async def _broken(part: str) -> Sequence[Finding]:
    return [Finding.warning(part, f"{part} broke.", why="It matters.", fix="Fix it.")]
