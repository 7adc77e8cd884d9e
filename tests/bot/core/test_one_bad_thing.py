"""One fault stays one fault: a bug in one piece of work ends neither its loop nor the others."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support.worlds.core_world import CoreWorld

from bot.domain.deliver import MAX_FAULTS
from bot.domain.threads.thread import Thread
from bot.errors import StoreError, StoreUnavailable
from bot.notices.answers import PostNotDelivered
from bot.store.store import Store

pytestmark = pytest.mark.promise("isolated")


class Faulty:
    """A store in which operations named by a test fail unexpectedly."""

    def __init__(self, store: Store, fault: Callable[[Any], None]) -> None:
        self._store = store
        self._fault = fault

    async def transact(self, work: Callable[[Any], Awaitable[Any]], *, urgent: bool = False) -> Any:
        async def watched(tx: Any) -> Any:
            return await work(_Transaction(tx, self._fault))

        return await self._store.transact(watched)

    async def close(self) -> None:
        await self._store.close()


class _Transaction:
    def __init__(self, tx: Any, fault: Callable[[Any], None]) -> None:
        self._tx = tx
        self.polls = _Polls(tx.polls, fault)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class _Polls:
    def __init__(self, polls: Any, fault: Callable[[Any], None]) -> None:
        self._polls = polls
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._polls, name)

    async def save(self, results: Any, owner: str) -> int:
        self._fault(results)
        return int(await self._polls.save(results, owner))


async def test_a_poll_that_cannot_be_saved_delays_no_other(world: CoreWorld) -> None:
    bad, good = await world.started("Bad", key="k1"), await world.started("Good", key="k2")
    real, bad_id = world.store, (await world.thread(bad)).id

    def fault(polls: Any) -> None:
        if any(poll.thread_id == bad_id for poll in polls):
            raise StoreError("a row that the database will not have")

    world.store = Faulty(real, fault)
    world.assemble()
    for job in ("job-1", "job-2"):
        world.job_api.show(job, "completed", f"https://git.example/{job}")
    running = asyncio.create_task(world.job_poller.run())
    world.clock.advance(10.0)
    world.job_poller.wake()

    async def saved() -> bool:
        job = (await real.transact(lambda tx: tx.threads.find_by_card("C1", good))).state.job  # type: ignore[union-attr]  # it is there
        return job is not None and job.ended

    async with asyncio.timeout(10):
        while not await saved():  # noqa: ASYNC110 - a database tells nobody of its changes
            await asyncio.sleep(0.02)
    await world.job_poller.stop(5.0)
    await running
    world.store = real
    world.assemble()
    await world.pass_time(60.0)
    assert world.chat.said(bad) == world.chat.said(good) == ["job_started", "job_finished"]


async def test_a_full_disk_that_still_reads_is_logged_as_one_outage(
    world: CoreWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Work can be claimed but its results cannot be saved: neither alone shows the state."""
    full = True

    def fault(polls: Any) -> None:
        if full:
            raise StoreUnavailable("The database's disk is full.")

    await world.started()
    world.store = Faulty(world.store, fault)
    world.assemble()

    async def go_on(seconds: float) -> None:
        for _ in range(int(seconds / 10)):
            await world.job_poller._claim_and_process(10)
            await asyncio.gather(*world.job_poller._tasks)
            world.clock.advance(10)

    await go_on(600)
    assert world.job_poller.status().failing_seconds > 500
    assert not world.job_poller.status().ok()
    full = False
    await go_on(200)
    assert world.job_poller.status().failing_seconds == 0
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert told[0] == "JobPoller: not working, will keep trying: The database's disk is full."
    assert told[1].startswith("JobPoller: works again after ")
    assert len(told) == 2


async def test_a_loop_survives_a_failing_claim(world: CoreWorld) -> None:
    took = asyncio.Event()
    take, tries = world.request_sender.claim, 0

    async def trips(limit: int) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ValueError("unforeseen")
        took.set()
        return await take(limit)

    world.request_sender.claim = trips  # type: ignore[method-assign]  # the fault is put in for the test
    running = asyncio.create_task(world.request_sender.run())
    async with asyncio.timeout(10):
        await took.wait()
    await world.request_sender.stop(5.0)
    await running
    assert tries >= 2


async def test_a_notice_that_raises_is_given_up_and_the_thread_continues(world: CoreWorld) -> None:
    ts = await world.started()
    tries = 0

    def fault(call: str, thread: Thread | None) -> None:
        nonlocal tries
        if call == "post" and tries < MAX_FAULTS:
            tries += 1
            raise KeyError("repository")

    world.chat.fault = fault
    world.job_api.show("job-1", "completed", "https://git.example/1")
    await world.pass_time(60.0)
    await world.reply(ts, "And more", "1700000900.000100")
    await world.pass_time(60.0)
    assert tries == MAX_FAULTS
    (told,) = world.chat.private_as(PostNotDelivered)
    assert (told.person_id, told.post.kind) == ("UANA", "job_finished")
    assert world.chat.said(ts) == ["job_started", "job_active_again"]
