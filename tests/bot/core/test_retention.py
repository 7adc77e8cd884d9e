import asyncio
import logging
from itertools import count, pairwise
from typing import Any

import pytest
from support.worlds.core_world import CoreWorld
from support.worlds.finished_jobs import fill_activity

from bot.errors import StoreUnavailable
from bot.scheduler.retention import DAY, RetentionSweeper


async def test_finished_jobs_are_deleted_after_their_time_and_running_ones_kept(world: CoreWorld) -> None:
    first = await world.started("first", key="k1")
    world.job_api.show("job-1", "failed")
    await world.pass_time(10)
    second = await world.started("second", key="k2")
    sweep = RetentionSweeper(world.store, days=90)
    assert await sweep.sweep() == 0
    world.clock.advance(91 * DAY)
    assert await sweep.sweep() == 1
    state = await world.store.transact(lambda tx: tx.threads.find_by_card("C1", first))
    assert state is None
    assert (await world.thread(second)).prompt == "second"


@pytest.fixture
async def old(world: CoreWorld) -> CoreWorld:
    """Three finished jobs that are over 90 days old, and a running one."""
    for number in range(1, 4):
        ts = await world.started(f"planted prompt {number}", key=f"k{number}")
        await world.reply(ts, f"planted reply {number}", f"{number}.5")
    await world.pass_time(20)
    for job in tuple(world.job_api.jobs):
        world.job_api.show(job, "completed", f"https://git.example/planted/{job}")
    await world.pass_time(3600)
    await world.started("running", key="k4")
    world.clock.advance(91 * DAY)
    return world


async def prompts(world: CoreWorld) -> list[str]:
    found = [await world.store.transact(lambda tx, id_=id_: tx.threads.get(id_)) for id_ in world.chat.cards]  # type: ignore[misc]  # one thread at a time
    return [thread.prompt for thread in found if thread is not None]


async def logged(caplog: pytest.LogCaptureFixture, words: str) -> None:
    """Waits until this text has been logged."""
    async with asyncio.timeout(10):
        while words not in caplog.text:  # noqa: ASYNC110 - a log tells nobody of its lines
            await asyncio.sleep(0.01)


async def test_old_rows_are_deleted_and_logged_as_a_count(old: CoreWorld, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    before = old.clock.now() - 90 * 24 * 3600.0
    assert await old.store.transact(lambda tx: tx.audit.read(since=0.0, until=before, after=0, limit=100))
    running = asyncio.create_task(RetentionSweeper(old.store, days=90).run())
    await logged(caplog, "3 finished jobs older than 90 days were deleted")
    running.cancel()
    assert not await old.store.transact(lambda tx: tx.audit.read(since=0.0, until=before, after=0, limit=100))
    assert await prompts(old) == ["running"]
    assert "planted" not in caplog.text


@pytest.mark.parametrize(("tick", "batches"), [(0.001, (16, 24)), (0.02, (16, 16, 8))])
async def test_batches_grow_while_deleting_is_quick(world: CoreWorld, tick: float, batches: tuple[int, ...]) -> None:
    await world.store.transact(lambda tx: fill_activity(tx.session.connection, 40))
    ticks, left = count(), []
    transact = world.store.transact

    async def counted(work: Any) -> Any:
        result = await transact(work)
        left.append(len(await transact(lambda tx: tx.audit.read(since=0.0, until=2e9, after=0, limit=100))))
        return result

    world.store.transact = counted  # type: ignore[method-assign, assignment]  # only watched
    await RetentionSweeper(world.store, days=90, monotonic=lambda: next(ticks) * tick).sweep()
    assert tuple(before - after for before, after in pairwise([40, *left]) if before != after) == batches


async def test_retention_survives_a_database_outage(old: CoreWorld, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    faults, transact = [StoreUnavailable("locked")], old.store.transact

    async def away_once(work: object) -> object:
        if faults:
            raise faults.pop()
        return await transact(work)  # type: ignore[arg-type]  # passed on as it came

    old.store.transact = away_once  # type: ignore[method-assign, assignment]  # the fault is put in for the test
    running = asyncio.create_task(RetentionSweeper(old.store, days=90, sweep_every=0.01).run())
    await logged(caplog, "3 finished jobs")
    running.cancel()
    assert "old jobs cannot be deleted now, the next try is in an hour: locked" in caplog.text
    assert await prompts(old) == ["running"]
