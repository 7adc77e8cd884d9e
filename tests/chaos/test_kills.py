"""Processes are killed while people work with them: nothing acknowledged is lost, nothing is posted or sent twice.

`python tests/chaos/long_run.py` does the same with hundreds of kills. PAGEHAND_CHAOS_SEED repeats an earlier plan.
"""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest
from support.chaos.process_group import ProcessGroup
from support.chaos.process_world import Round
from support.chaos.rounds import new_sqlite, one_instance, play_round, three_instances
from support.chaos.run import RoundResult
from support.servers.postgres import PostgresServer

pytestmark = [pytest.mark.chaos, pytest.mark.promise("done or explained", "posted once", "nothing missed", "one owner")]
"""A round ends when nothing moves any more, so a busy machine only takes longer."""
AT_POINTS = 4
"""The minimum number of kills at a named point in each round; of a short one, one."""
SHORT = 6
"""The number of kills in the default lane, in which people act a third as often."""
SECONDS = 150.0
"""Seconds after which a machine that is too slow for all the kills gives up."""
SLACK_PACE = 6.0
"""The factor by which Slack's minute is shortened, so that three processes reach its limits and finish in time."""


@pytest.mark.parametrize("kills", [SHORT, pytest.param(30, marks=pytest.mark.full)])
async def test_nothing_is_lost_or_repeated_over_kills(
    process_group: ProcessGroup, scratch: Path, maybe_postgres: PostgresServer | None, seed: int, kills: int
) -> None:
    """Both databases and both transports run side by side, since most of the time is spent waiting for leases to
    expire. The processes on PostgreSQL share Slack's limits. If that does not start, SQLite gets all the kills.
    """
    async with AsyncExitStack() as stack:
        sqlite = await new_sqlite(scratch, "one")
        at_points = min(AT_POINTS, kills // SHORT)
        plan = partial(Round, at_points=at_points, seconds=SECONDS, pace=1.0 if kills > SHORT else 3.0)
        if maybe_postgres is None:
            rounds = [plan("SQLite", sqlite, one_instance, idempotent=False, http=True, kills=kills)]
        else:
            url = await stack.enter_async_context(maybe_postgres.database())
            rounds = [
                plan("SQLite", sqlite, one_instance, idempotent=False, http=True, kills=kills / 2),
                plan(
                    "PostgreSQL",
                    url,
                    three_instances,
                    idempotent=True,
                    kills=kills / 2,
                    slack_pace=SLACK_PACE,
                    downtimes=1,
                ),
            ]
        async with asyncio.TaskGroup() as group:  # if one fails, the other is not continued
            tasks = [group.create_task(play_round(process_group, scratch, played, seed)) for played in rounds]
        results = [task.result() for task in tasks]
    for result in results:
        _check(result, seed)
        assert result.world.process_pool.at_points >= at_points, f"with seed {seed}"
    assert sum(len(result.world.process_pool.kills) for result in results) >= kills


def _check(result: RoundResult, seed: int) -> None:
    assert not result.verdict.faults, "\n".join([f"with seed {seed}:", *result.verdict.faults])
    assert sum(ask.acked for scenario in result.scenarios for ask in scenario.asks) == len(result.scenarios)
    assert result.resume.taken_over, f"with seed {seed}"
