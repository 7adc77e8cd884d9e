"""Clocks that are set forward and back while the bot is running, and machines with different clocks."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.libfaketime import LIBFAKETIME
from support.oracles.leaks import faults_in_logs
from support.servers.fake_job_api import KEY, Operation, slow
from support.servers.postgres import PostgresServer
from support.worlds.app_world import AppWorld, a_world, until

from bot.slack.rendering.ephemeral_texts import RECORDED
from bot.store.schema.migration import migrate

pytestmark = pytest.mark.chaos
FINISHED = ("started", "completed")
SOON = 25.0
"""Seconds within which work continues after a clock was set, on a busy machine."""
AHEAD = 30.0
"""Seconds between two clocks: more than the lease of a poll."""
SLOW_POLL = 0.3


DATABASE_CLOCK = (
    "CREATE TABLE public.clock_shift AS SELECT 0.0::float8 AS seconds",
    """CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT pg_catalog.clock_timestamp() + make_interval(secs => seconds) FROM public.clock_shift'""",
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$",
)
"""Gives a database its own clock, which can be set."""


@pytest.fixture
async def world(sqlite_url: str) -> AsyncIterator[AppWorld]:
    """On SQLite: on PostgreSQL the database's clock counts."""
    async with a_world(sqlite_url, PAGEHAND_ALLOW_SHARED_CHANNELS="true") as made:
        yield made


async def asked(world: AppWorld, prompt: str) -> str:
    """Asks until a command is acknowledged, and returns its prompt: after a clock was set forward, connections look
    idle and are reopened; Slack does not repeat a command.
    """
    for again in ("", " again", " once more"):
        if (await world.ask(f"{prompt}{again}")).text == RECORDED:
            return f"{prompt}{again}"
    pytest.fail(f"{prompt} was never acknowledged")


async def whole_story(world: AppWorld, name: str) -> None:
    """Plays a job, a reply and their ends, each within seconds."""
    name = await asked(world, name)
    await world.until_said(name, "started", seconds=SOON)
    world.complete(world.fake_job_api.job_of(name))
    await world.until_said(name, *FINISHED, seconds=SOON)
    await world.reply(name, f"More of {name}")
    await world.until_said(name, *FINISHED, "active", seconds=SOON)
    world.complete(world.fake_job_api.job_of(name))
    await world.until_said(name, *FINISHED, "active", "completed", seconds=SOON)


@pytest.mark.full
@pytest.mark.skipif(not LIBFAKETIME, reason="left out: libfaketime is not installed")
async def test_a_processs_clock_is_set_while_it_runs(world: AppWorld, scratch: Path) -> None:
    """Every reading of the clock in it gets the new time, including in libraries."""
    clock = scratch / "clock"
    clock.write_text("+0")
    async with process(world, clock):
        await world.workspace.changes.wait_for(lambda: len(world.workspace.socket_mode.connections) == 2)
        for name, hours in (("Forward", "+1h"), ("Back", "-1h")):
            (job,) = await world.begin(f"Before {name}")
            clock.write_text(hours)
            world.complete(job)
            await world.until_said(f"Before {name}", *FINISHED, seconds=SOON)
            await whole_story(world, name)
    await world.start()
    await world.check()


@asynccontextmanager
async def process(world: AppWorld, clock: Path) -> AsyncIterator[int]:
    """Starts `pagehand run` with a wall clock that follows a file, and yields its process id; its
    log is searched at the end.
    """
    own = {"PATH": os.environ["PATH"], "HOME": str(clock.parent), "PYTHONPATH": str(Path(__file__).parents[3])}
    faked = {
        "LD_PRELOAD": LIBFAKETIME,
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",  # seconds; reading the file at each look at the clock would take half a core
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    log_file = clock.with_suffix(".log")
    with log_file.open("wb") as log:
        running = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bot",
            "run",
            env=world.environment(**own, **faked, PAGEHAND_LOG_FORMAT="text"),
            stdout=log,
            stderr=log,
        )
    try:
        yield running.pid
    finally:
        running.terminate()
        await running.wait()
    assert running.returncode == 0
    assert (
        faults_in_logs([log_file], (KEY, world.workspace.credentials.bot_token, world.workspace.credentials.app_token))
        == []
    )


@pytest.mark.full
@pytest.mark.postgres
async def test_the_databases_clock_is_set(postgres: PostgresServer) -> None:
    """Two instances; on PostgreSQL its clock counts. It is set forward by an hour, and back again."""
    async with postgres.empty_database() as url:
        await migrate(url)
        async with a_world(url) as world:
            for statement in DATABASE_CLOCK:
                await world.sql(statement)
            await world.engine.dispose()
            await world.start()
            await world.start()
            (job,) = await world.begin("Before")
            await world.sql("UPDATE clock_shift SET seconds = 3600")
            world.complete(job)
            await world.until_said("Before", *FINISHED, seconds=SOON)
            await whole_story(world, "Forward")
            (job,) = await world.begin("Between")
            await world.sql("UPDATE clock_shift SET seconds = 0")
            world.complete(job)
            await world.until_said("Between", *FINISHED, seconds=SOON)
            await whole_story(world, "Back")
            await world.check()
            await world.stop()


@pytest.mark.full
@pytest.mark.postgres
@pytest.mark.skipif(not LIBFAKETIME, reason="left out: libfaketime is not installed")
async def test_two_instances_with_different_clocks(postgres_url: str, scratch: Path) -> None:
    """One is a separate process. Polls take a while: an instance that used its own clock would
    repeat the other's polls.
    """
    clock = scratch / "clock"
    clock.write_text(f"+{AHEAD:.0f}")
    began = time.time()
    async with a_world(postgres_url) as world, process(world, clock) as other:
        world.fake_job_api.fail(slow(SLOW_POLL), Operation.GET, times=None)
        await world.start()
        await world.workspace.changes.wait_for(lambda: len(world.workspace.socket_mode.connections) == 4, SOON)
        prompts = [f"Task {number}" for number in range(8)]
        for prompt in prompts:
            await world.ask(prompt)
        await pollers_seen(world, {os.getpid(), other})  # no job ends before, however the polls are distributed
        world.fake_job_api.autopilot(polls=4)
        for prompt in prompts:
            await world.reply(prompt, f"More of {prompt}")
        await world.until_ended(*prompts)
        await world.check()
    written = time.mktime(time.strptime(clock.with_suffix(".log").read_text()[:19], "%Y-%m-%d %H:%M:%S"))
    assert written > began + AHEAD - 1.0


async def pollers_seen(world: AppWorld, wanted: set[int]) -> None:
    """Waits until each of these processes has been seen to poll a job."""
    seen = set[int]()

    async def all_seen() -> bool:
        owners = await world.sql("SELECT claimed_by FROM polls WHERE claimed_by IS NOT NULL")
        seen.update(int(owner.split("-")[-2]) for (owner,) in owners)
        return wanted <= seen

    await until(all_seen, SOON)
