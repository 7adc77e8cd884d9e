"""Database faults: away, damaged, or full."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from support.disks import a_disk, fill
from support.servers.free_ports import free_port
from support.servers.postgres import NoPostgres, PostgresServer, postgres_server
from support.worlds.app_world import AppWorld, a_world, until

from bot.app.application import HealthTimings
from bot.slack.rendering.ephemeral_texts import NOT_RECORDED, RECORDED, STILL_RECORDING

pytestmark = [pytest.mark.chaos, pytest.mark.promise("recovery")]
FINISHED = ("started", "completed")
ACK_SECONDS = 3.0


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    """A server of these tests' own, since it is stopped and restarted."""
    try:
        with postgres_server() as server:
            yield server
    except NoPostgres as error:
        pytest.skip(str(error))


async def asked_in_trouble(world: AppWorld, prompt: str) -> str:
    """Asks during a database fault: the answer is in time, and explains the fault."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    answer = await world.ask(prompt)
    assert clock() - begun < ACK_SECONDS
    assert answer.text in {RECORDED, STILL_RECORDING, NOT_RECORDED}
    return answer.text


async def done_or_explained(world: AppWorld, prompt: str, answer: str) -> None:
    """The answer to a command was true: it started, or the person knows that it did not."""

    async def state() -> bool:
        recorded = await world.sql("SELECT id FROM requests WHERE text = :prompt", prompt=prompt)
        return bool(recorded) or NOT_RECORDED in world.private_text("ana")

    if answer == NOT_RECORDED:
        assert not await world.sql("SELECT id FROM requests WHERE text = :prompt", prompt=prompt)
        return
    await until(state, 20)
    if await world.sql("SELECT id FROM requests WHERE text = :prompt", prompt=prompt):
        await world.until_said(prompt, "started")


@pytest.mark.full
@pytest.mark.postgres
async def test_postgresql_is_restarted(own_postgres: PostgresServer) -> None:
    async with own_postgres.database() as url, a_world(url) as world:
        await world.start()
        await world.start()
        job, other = await world.begin("Running", "Steered")
        await asyncio.to_thread(own_postgres.stop)
        world.complete(job)
        await world.reply("Steered", "Meanwhile")
        answer = await asked_in_trouble(world, "Asked meanwhile")
        polls = len(world.fake_job_api.polls)
        await asyncio.to_thread(own_postgres.start)
        await world.fake_job_api.until(lambda: len(world.fake_job_api.polls) > polls)
        await world.until_said("Running", *FINISHED)
        await world.fake_job_api.until(lambda: world.fake_job_api.follow_ups(other) == ["Meanwhile"])
        await done_or_explained(world, "Asked meanwhile", answer)
        await world.check()


@pytest.mark.full
async def test_a_damaged_row_affects_one_job(world: AppWorld) -> None:
    """It is reported in its thread, and to everyone who replies there; the others continue."""
    await world.start()
    damaged, spared = await world.begin("Damaged", "Spared")
    # With a new revision, since a poll that remembers the thread might otherwise never read it, or overwrite it.
    await world.sql("UPDATE threads SET state = '{', revision = revision + 1 WHERE prompt = 'Damaged'")
    await world.until_said("Damaged", "started", "damaged")
    await world.reply("Damaged", "Go on")
    await world.workspace.changes.wait_for(lambda: "a usable record" in world.private_text("ana"))
    world.complete(damaged, spared)
    await world.until_said("Spared", *FINISHED)
    assert world.fake_job_api.follow_ups(damaged) == []
    assert world.said("Damaged") == ["started", "damaged"]
    await world.stop()


@pytest.fixture
def small_disk(scratch: Path) -> Iterator[Path]:
    with a_disk(scratch / "disk", "2m") as disk:
        yield disk


async def test_the_disk_fills_up_and_recovers(small_disk: Path) -> None:
    filler = small_disk / "filler"
    async with a_world(f"sqlite:///{small_disk}/pagehand.sqlite3") as world:
        await world.start()
        job, other = await world.begin("Running", "Steered")
        fill(filler)
        answer, number = str(RECORDED), 0
        while answer == RECORDED:  # what fits into SQLite's log is still accepted
            number += 1
            answer = await asked_in_trouble(world, f"Number {number} " + "x" * 2_000)
        assert answer == NOT_RECORDED
        world.complete(job)
        await world.reply("Steered", "Meanwhile " + "x" * 2_000)
        words = world.replied[-1]
        await world.workspace.changes.wait_for(lambda: any(d.attempts > 1 for d in world.workspace.deliveries.records))
        assert world.fake_job_api.follow_ups(other) == []
        filler.unlink()
        await world.until_said("Running", *FINISHED)
        await world.fake_job_api.until(lambda: world.fake_job_api.follow_ups(other) == [words])
        await world.check()


QUICK_CHECKS = HealthTimings(probe_every=0.1, probe_retry=0.1, recording_recovery=1.0)


@pytest.mark.full
async def test_a_full_disk_shows_while_idle(small_disk: Path) -> None:
    """The fault shows without any request; people who ask are told; and all is healthy again later."""
    port, filler = free_port(), small_disk / "filler"
    async with (
        a_world(f"sqlite:///{small_disk}/pagehand.sqlite3") as world,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        await world.start(timings=QUICK_CHECKS, PAGEHAND_HEALTH_PORT=str(port))

        async def status(page: str) -> tuple[int, str]:
            async with session.get(page) as answer:
                return answer.status, json.loads(await answer.text()).get("parts", {}).get("recording", "")

        async def is_ready() -> bool:
            return (await status("/health/ready"))[0] == 200

        async def is_full() -> bool:
            return not await is_ready()

        await until(is_ready, 20)
        fill(filler)
        await until(is_full, 20)
        for page in ("/health/ready", "/health"):
            code, words = await status(page)
            assert code == 503
            assert words.endswith("make room on it. If Pagehand is running, it goes on by itself.")
        assert (await status("/health/live"))[0] == 200
        await asyncio.to_thread(filler.unlink)
        await until(is_ready, 20)
        assert (await status("/health"))[0] == 200
        await world.begin("It works")
