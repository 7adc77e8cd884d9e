"""Processes are killed while people work with them: nothing acknowledged is lost, nothing is said or sent twice.

`python tests/chaos/long_run.py` is the same with hundreds of kills. PAGEHAND_CHAOS_SEED repeats an earlier plan.
"""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest
from chaos.crew import Nursery
from chaos.resume import longest
from chaos.rounds import Round, new_sqlite, one_instance, play_round, three_instances
from chaos.scenario import Outcome
from chaos.world import LEASE
from postgres import PostgresServer

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]
KILLS, AT_POINTS = 30, 4
"""How many there are at least, and how many of them in each round at a named point."""
SECONDS = 90.0
"""After which a machine that is too slow for so many kills gives up."""
TO_NOTICE = 10.0
"""Seconds that those who live may need once a lease has run out: they are killed and started again all the time."""


async def test_kills(opened_nursery: Nursery, scratch: Path, maybe_postgres: PostgresServer | None, seed: int) -> None:
    """Both databases and both ways of Slack to the bot, side by side, since most of the time passes with waiting for
    leases to run out. Where PostgreSQL does not start, SQLite gets all the kills.
    """
    async with AsyncExitStack() as stack:
        sqlite = await new_sqlite(scratch, "one")
        plan = partial(Round, at_points=AT_POINTS, seconds=SECONDS)
        if maybe_postgres is None:
            rounds = [plan("SQLite", sqlite, one_instance, idempotent=False, http=True, kills=KILLS)]
        else:
            url = await stack.enter_async_context(maybe_postgres.database())
            rounds = [
                plan("SQLite", sqlite, one_instance, idempotent=False, http=True, kills=KILLS / 2),
                plan("PostgreSQL", url, three_instances, idempotent=True, kills=KILLS / 2),
            ]
        outcomes = await asyncio.gather(*(play_round(opened_nursery, scratch, played, seed) for played in rounds))
    for outcome in outcomes:
        _check(outcome, seed)
    assert sum(len(outcome.world.crew.kills) for outcome in outcomes) >= KILLS


def _check(outcome: Outcome, seed: int) -> None:
    assert not outcome.verdict.faults, "\n".join([f"with seed {seed}:", *outcome.verdict.faults])
    assert outcome.world.crew.at_points >= AT_POINTS, f"with seed {seed}"
    assert sum(ask.acked for errand in outcome.errands for ask in errand.asks) == len(outcome.errands)
    assert longest(outcome.resume.anywhere) < LEASE
    assert outcome.resume.taken_over
    assert longest(outcome.resume.taken_over) < LEASE + TO_NOTICE, f"with seed {seed}"
