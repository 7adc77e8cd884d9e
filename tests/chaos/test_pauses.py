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


async def test_pauses(opened_nursery: Nursery, scratch: Path, maybe_postgres: PostgresServer | None, seed: int) -> None:
    if maybe_postgres is None:
        pytest.skip("two processes share a database: PostgreSQL does not start here")
    async with maybe_postgres.database() as url:
        outcome = await play_round(
            opened_nursery,
            scratch,
            Round("Pauses", url, sleepers, idempotent=False, kills=1, seconds=60.0, pauses=PAUSES),
            seed,
        )
    assert outcome.verdict.faults == [], f"with seed {seed}, stopped at {outcome.world.crew.pauses}"
    assert len(outcome.world.crew.pauses) >= PAUSES
