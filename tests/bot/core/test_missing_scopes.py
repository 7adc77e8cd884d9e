"""What a retry cannot fix is given up at once: the thread continues, and a reaction delays nothing."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support.worlds.core_world import ANA, CoreWorld

from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import WayIn
from bot.errors import (
    ChatError,
    ChatMissingScope,
    ChatRateLimited,
    ChatUncertain,
    ChatUnreachable,
    StoreError,
)
from bot.notices.answers import CardNotPosted, PostNotDelivered
from bot.notices.job import JobFinished
from bot.notices.notice import Delivery, Reaction
from bot.store.store import Store

LINK = "https://git.example/pull/1"


def no_history() -> ChatError:
    return ChatMissingScope(("groups:history",))


async def test_a_missing_scope_for_marks_affects_no_thread(world: CoreWorld, caplog: pytest.LogCaptureFixture) -> None:
    ts = await world.started()
    world.chat.fail(mark=ChatMissingScope(("reactions:write",)))
    with caplog.at_level(logging.WARNING):
        await world.reply(ts, "Also the FAQ", "5.000001", wait=10)
        await world.show("completed", LINK, wait=60)
    assert world.job_api.messages["job-1"] == ["Also the FAQ"]
    assert world.chat.said(ts) == ["job_started", "job_finished"]
    assert world.chat.calls.count("mark") == 1
    assert world.outbox.status().failing_seconds == 0
    assert not [record for record in caplog.records if "given up" in record.message], "the scope is named elsewhere"


@pytest.mark.first(error=1)
@pytest.mark.parametrize("error", [ChatUncertain("timeout"), ChatUnreachable("down"), ChatRateLimited("ratelimited")])
async def test_a_mark_that_keeps_failing_delays_no_post_and_no_card(world: CoreWorld, error: ChatError) -> None:
    ts = await world.started()
    world.chat.fail(mark=error)
    await world.reply(ts, "Also the FAQ", "5.000001", wait=10)
    await world.show("completed", LINK, wait=60)
    assert world.chat.said(ts)[-1] == "job_finished"
    job = world.chat.cards[(await world.thread(ts)).id].state.job
    assert job is not None
    assert job.status == "completed"
    world.chat.recover()
    await world.pass_time(120)
    assert world.chat.reactions == {"5.000001": Reaction.ACCEPTED}


async def test_a_channel_with_rate_limited_posts_still_gets_marks(world: CoreWorld) -> None:
    ts = await world.started()
    world.chat.fail(post=ChatRateLimited("ratelimited", retry_after=600.0))
    await world.show("completed", LINK, wait=5)
    await world.reply(ts, "Also the FAQ", "5.000001", wait=30)
    assert world.chat.reactions == {"5.000001": Reaction.ACCEPTED}
    assert world.chat.calls.count("post") == 2, "one that started, one that was asked to wait"


async def test_slow_marks_leave_slots_for_posts(world: CoreWorld) -> None:
    ts = await world.started()
    for number in range(20):
        await world.reply(ts, f"Change {number}", f"5.{number:06}")
    world.clock.advance(6.0)
    world.job_api.show("job-1", "completed", LINK)
    await world.step(world.job_poller)
    under_way = await world.outbox.claim(16)
    deliveries = [item.notice.delivery for item in under_way]
    assert deliveries[0] is not Delivery.REACTION, "words come first"
    assert deliveries.count(Delivery.REACTION) == 8
    assert not await world.outbox.claim(8)
    for item in under_way:
        await world.outbox.process(item, world.clock.monotonic())
    kinds = [item.notice.delivery for item in await world.outbox.claim(16)]
    assert kinds.count(Delivery.REACTION) == 8, "the places are free again"


async def test_a_post_in_doubt_that_cannot_be_looked_for_is_reported(world: CoreWorld) -> None:
    ts = await world.started()
    posts = world.chat.calls.count("post")
    world.chat.fail(find=no_history())
    world.chat.lose(post=ChatUncertain("timeout"))
    await world.show("completed", LINK, wait=60)
    assert world.chat.calls.count("post") == posts + 1, "it is not said twice"
    assert world.chat.private == [
        PostNotDelivered("UANA", JobFinished(LINK, new=True, person_id="UANA"), may_be_posted=True)
    ]
    world.chat.lose()
    await world.reply(ts, "More", "5.000001", wait=30)
    assert world.chat.said(ts)[-1] == "job_active_again"


@pytest.mark.parametrize("arrived", [True, False])
async def test_no_job_starts_for_a_card_in_doubt_that_cannot_be_looked_for(world: CoreWorld, *, arrived: bool) -> None:
    in_doubt = {"post_card": ChatUncertain("timeout")}
    world.chat.fail(find=no_history(), **({} if arrived else in_doubt))
    world.chat.lose(**in_doubt)
    await world.ask(NewJob(ANA, "C1", "Do it", "k", WayIn.COMMAND), wait=60)
    assert world.chat.calls.count("post_card") == 1
    assert world.job_api.created == []
    assert world.chat.private == [CardNotPosted("UANA", "missing_scope", ("groups:history",), may_be_posted=True)]


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


@pytest.mark.promise("isolated")
async def test_a_poll_that_cannot_be_saved_delays_no_other(world: CoreWorld) -> None:
    bad, good = await world.started("Bad", key="k1"), await world.started("Good", key="k2")
    real, bad_id = world.store, (await world.thread(bad)).id

    def fault(polls: Any) -> None:
        if any(poll.thread_id == bad_id for poll in polls):
            raise StoreError("a row that the database will not have")

    world.configure(store=Faulty(real, fault))
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
    world.configure(store=real)
    await world.pass_time(60.0)
    assert world.chat.said(bad) == world.chat.said(good) == ["job_started", "job_finished"]


@pytest.mark.promise("isolated")
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
