"""One bad thing stays one bad thing: a fault of ours in one piece of work ends neither its loop nor the others."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from core_world import World

from bot.domain.models import Thread
from bot.errors import StoreError
from bot.loops.outbox import FAULTY_TRIES
from bot.ports import Store


class Faulty:
    """A store in which what a test names fails, in a way that nobody expects."""

    def __init__(self, store: Store, fault: Callable[[Any], None]) -> None:
        self._store = store
        self._fault = fault

    async def transact(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        async def watched(tx: Any) -> Any:
            return await work(_Watched(tx, self._fault))

        return await self._store.transact(watched)

    async def close(self) -> None:
        await self._store.close()


class _Watched:
    def __init__(self, tx: Any, fault: Callable[[Any], None]) -> None:
        self._tx = tx
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def save_polls(self, polls: Any, owner: str) -> int:
        self._fault(polls)
        return int(await self._tx.save_polls(polls, owner))


async def test_a_poll_that_cannot_be_saved_holds_back_no_other(world: World) -> None:
    bad, good = await world.started("Bad", key="k1"), await world.started("Good", key="k2")
    real, bad_id = world.store, (await world.thread(bad)).id

    def fault(polls: Any) -> None:
        if any(poll.thread.id == bad_id for poll in polls):
            raise StoreError("a row that the database will not have")

    world.store = Faulty(real, fault)
    world.assemble()
    for job in ("job-1", "job-2"):
        world.job_api.show(job, "completed", f"https://git.example/{job}")
    running = asyncio.create_task(world.watch.run())
    world.clock.advance(10.0)
    world.watch.wake()

    async def saved() -> bool:
        job = (await real.transact(lambda tx: tx.thread_at("C1", good))).known.job  # type: ignore[union-attr]  # it is there
        return job is not None and job.ended

    async with asyncio.timeout(10):
        while not await saved():  # noqa: ASYNC110 - a database tells nobody of its changes
            await asyncio.sleep(0.02)
    await world.watch.stop(5.0)
    await running
    world.store = real
    world.assemble()
    await world.pass_time(60.0)
    assert world.chat.said(bad) == world.chat.said(good) == ["started", "finished"]


async def test_a_loop_survives_a_fault_in_taking_work(world: World) -> None:
    took = asyncio.Event()
    take, tries = world.intake.take, 0

    async def trips(limit: int) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ValueError("unforeseen")
        took.set()
        return await take(limit)

    world.intake.take = trips  # type: ignore[method-assign]  # the fault is put in for the test
    running = asyncio.create_task(world.intake.run())
    async with asyncio.timeout(10):
        await took.wait()
    await world.intake.stop(5.0)
    await running
    assert tries >= 2


async def test_a_notice_that_trips_a_fault_is_given_up_and_the_thread_goes_on(world: World) -> None:
    ts = await world.started()
    tries = 0

    def fault(call: str, thread: Thread | None) -> None:
        nonlocal tries
        if call == "post" and tries < FAULTY_TRIES:
            tries += 1
            raise KeyError("repository")

    world.chat.fault = fault
    world.job_api.show("job-1", "completed", "https://git.example/1")
    await world.pass_time(60.0)
    await world.reply(ts, "And more", "1700000900.000100")
    await world.pass_time(60.0)
    assert tries == FAULTY_TRIES
    assert [(person, what) for person, what, _ in world.chat.told] == [("UANA", "finished")]
    assert world.chat.said(ts) == ["started", "active_again"]
