"""Processes are stopped for longer than a lease and then go on: what they come back with does no harm.

One moment is left out: between the last look at the lease and the call, a process can be stopped by nothing that it
could notice, and its call then goes out late.
"""

from pathlib import Path

import pytest
from chaos.crew import Nursery
from chaos.rounds import Round, play_round, sleepers
from postgres import PostgresServer

pytestmark = [pytest.mark.chaos, pytest.mark.postgres, pytest.mark.timeout(240)]
PAUSES = 3
SECONDS = 90.0
"""After which a machine that is too slow for so many pauses gives up."""


async def test_pauses(opened_nursery: Nursery, scratch: Path, maybe_postgres: PostgresServer | None, seed: int) -> None:
    if maybe_postgres is None:
        pytest.skip("two processes share a database: PostgreSQL does not start here")
    async with maybe_postgres.database() as url:
        outcome = await play_round(
            opened_nursery,
            scratch,
            Round("Pauses", url, sleepers, idempotent=False, kills=float("inf"), seconds=SECONDS, pauses=PAUSES),
            seed,
        )
    faults = outcome.verdict.faults
    assert not faults, "\n".join([f"with seed {seed}, stopped at {outcome.world.crew.pauses}:", *faults])
    assert len(outcome.world.crew.pauses) >= PAUSES
