"""Workers and API processes of the job server are killed, stopped, and cut off from their database while they work: an
instruction is one commit, and a pull request is opened once. PAGEHAND_CHAOS_SEED repeats an earlier plan.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chaos.worker_client import JobClient
from support.chaos.worker_verdict import faults
from support.chaos.worker_world import worker_world
from support.servers.postgres import NoPostgres, PostgresServer, postgres_server

pytestmark = [pytest.mark.chaos, pytest.mark.postgres, pytest.mark.promise("jobs once", "questions")]
CALM = 3
"""Jobs that are cancelled while nothing is done to any process."""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of its own, which is restarted."""
    try:
        with postgres_server(fsync="off", full_page_writes="off") as started:
            yield started
    except NoPostgres as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("rounds", "pause"), [(1, 3.0), pytest.param(2, 1.0, marks=pytest.mark.full)])
async def test_each_instruction_is_one_commit_over_kills_of_its_workers(
    forked: tuple[str, ...], server: PostgresServer, scratch: Path, *, seed: int, rounds: int, pause: float
) -> None:
    async with worker_world(forked, server, scratch, seed, is_long=rounds > 1) as world:
        client = JobClient(world, seed)
        try:
            for _ in range(CALM):
                client.begin("cancel")
            await client.all_ended()
            over = asyncio.Event()
            working = asyncio.create_task(client.work(over, pause=pause))
            await world.disrupt(rounds)
            over.set()
            await working
        finally:
            await client.close()
        found = await faults(world, client.jobs)
    assert not found, "\n".join([f"with seed {seed}, after {Counter(world.done)}:", *found])
    assert sum(job.stopped_within is not None for job in client.jobs) == CALM
