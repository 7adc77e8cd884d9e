"""Processes are paused for longer than a lease and then resumed: their late actions do no harm.

One moment is left out: between the last check of the lease and the call, a process cannot notice that it was paused,
and its call is sent late.
"""

from pathlib import Path

import pytest
from support.chaos.process_group import ProcessGroup
from support.chaos.process_world import Round
from support.chaos.rounds import paused_instances, play_round
from support.servers.postgres import PostgresServer

pytestmark = [pytest.mark.promise("paused"), pytest.mark.chaos, pytest.mark.full, pytest.mark.postgres]
PAUSES = 3
SECONDS = 90.0
"""Seconds after which a machine that is too slow for all the pauses gives up."""


async def test_nothing_is_lost_or_repeated_over_pauses(
    process_group: ProcessGroup, scratch: Path, maybe_postgres: PostgresServer | None, seed: int
) -> None:
    if maybe_postgres is None:
        pytest.skip("two processes share a database: PostgreSQL does not start here")
    async with maybe_postgres.database() as url:
        result = await play_round(
            process_group,
            scratch,
            Round(
                "Pauses", url, paused_instances, idempotent=False, kills=float("inf"), seconds=SECONDS, pauses=PAUSES
            ),
            seed,
        )
    faults = result.verdict.faults
    assert not faults, "\n".join([f"with seed {seed}, stopped at {result.world.process_pool.pauses}:", *faults])
    assert result.world.process_pool.pauses, "or nothing was proven; the machine decides how many"
