"""What a retry cannot fix is given up at once: the thread continues, and a reaction delays nothing."""

import logging
from collections.abc import Callable

import pytest
from support.worlds.core_world import ANA, CoreWorld

from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import WayIn
from bot.domain.threads.thread import Thread
from bot.errors import ChatError, ChatMissingScope, ChatRateLimited, ChatUncertain, ChatUnreachable
from bot.notices.answers import CardNotPosted, PostNotDelivered
from bot.notices.job import JobFinished
from bot.notices.notice import Delivery, Reaction

LINK = "https://git.example/pull/1"


def failing(world: CoreWorld, call: str, error: Callable[[], ChatError], *, times: int = 10_000) -> None:
    """The next calls of this kind get the error; no other call does."""
    left = times

    def fault(made: str, thread: Thread | None) -> None:
        nonlocal left
        if made == call and left:
            left -= 1
            raise error()

    world.chat.fault = fault


def tries(world: CoreWorld, call: str) -> int:
    return world.chat.calls.count(call)


def no_history() -> ChatError:
    return ChatMissingScope(("groups:history",))


async def test_a_missing_scope_for_marks_does_not_affect_the_thread(
    world: CoreWorld, caplog: pytest.LogCaptureFixture
) -> None:
    ts = await world.started()
    failing(world, "mark", lambda: ChatMissingScope(("reactions:write",)))
    with caplog.at_level(logging.WARNING):
        await world.reply(ts, "Also the FAQ", "5.000001")
        await world.pass_time(10)
        world.job_api.show("job-1", "completed", LINK)
        await world.pass_time(60)
    assert world.job_api.messages["job-1"] == ["Also the FAQ"]
    assert world.chat.said(ts) == ["job_started", "job_finished"]
    assert tries(world, "mark") == 1
    assert world.outbox.status().failing_seconds == 0
    assert not [record for record in caplog.records if "given up" in record.message], "the scope is named elsewhere"


@pytest.mark.parametrize("error", [ChatUncertain("timeout"), ChatUnreachable("down"), ChatRateLimited("ratelimited")])
async def test_a_mark_that_keeps_failing_delays_no_post_and_no_card(world: CoreWorld, error: ChatError) -> None:
    ts = await world.started()
    failing(world, "mark", lambda: error)
    await world.reply(ts, "Also the FAQ", "5.000001")
    await world.pass_time(10)
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(60)
    assert world.chat.said(ts)[-1] == "job_finished"
    job = world.chat.cards[(await world.thread(ts)).id].state.job
    assert job is not None
    assert job.status == "completed"
    world.chat.fault = lambda call, thread: None
    await world.pass_time(120)
    assert world.chat.reactions == {"5.000001": Reaction.ACCEPTED}


async def test_a_channel_with_rate_limited_marks_still_gets_posts(world: CoreWorld) -> None:
    ts = await world.started()
    failing(world, "mark", lambda: ChatRateLimited("ratelimited", retry_after=600.0))
    await world.reply(ts, "Also the FAQ", "5.000001")
    await world.pass_time(5)
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(60)
    assert world.chat.said(ts)[-1] == "job_finished"
    assert tries(world, "mark") == 1, "the channel's marks wait as asked"


async def test_a_channel_with_rate_limited_posts_still_gets_marks(world: CoreWorld) -> None:
    ts = await world.started()
    failing(world, "post", lambda: ChatRateLimited("ratelimited", retry_after=600.0))
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(5)
    await world.reply(ts, "Also the FAQ", "5.000001")
    await world.pass_time(30)
    assert world.chat.reactions == {"5.000001": Reaction.ACCEPTED}
    assert tries(world, "post") == 2, "one that started, one that was asked to wait"


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


async def test_a_429_without_retry_after_backs_off(world: CoreWorld) -> None:
    await world.started()
    before = tries(world, "post")
    failing(world, "post", lambda: ChatRateLimited("message_limit_exceeded"))
    world.job_api.show("job-1", "completed", LINK)
    for _ in range(20):
        await world.pass_time(20)
    assert 5 <= tries(world, "post") - before <= 20


async def test_a_post_in_doubt_that_cannot_be_looked_for_is_reported(world: CoreWorld) -> None:
    ts = await world.started()
    posts = 0

    def fault(call: str, thread: Thread | None) -> None:
        if call == "find":
            raise no_history()

    def after(call: str, thread: Thread | None) -> None:
        nonlocal posts
        if call == "post":
            posts += 1
            raise ChatUncertain("timeout")

    world.chat.fault, world.chat.after = fault, after
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(60)
    assert posts == 1, "it is not said twice"
    assert world.chat.private == [
        PostNotDelivered("UANA", JobFinished(LINK, new=True, person_id="UANA"), may_be_posted=True)
    ]
    world.chat.after = lambda call, thread: None
    await world.reply(ts, "More", "5.000001")
    await world.pass_time(30)
    assert world.chat.said(ts)[-1] == "job_active_again"


@pytest.mark.parametrize("arrived", [True, False])
async def test_no_job_starts_for_a_card_in_doubt_that_cannot_be_looked_for(world: CoreWorld, *, arrived: bool) -> None:
    def fault(call: str, thread: Thread | None) -> None:
        if call == "find":
            raise no_history()
        if call == "post_card" and not arrived:
            raise ChatUncertain("timeout")

    def after(call: str, thread: Thread | None) -> None:
        if call == "post_card" and arrived:
            raise ChatUncertain("timeout")

    world.chat.fault, world.chat.after = fault, after
    await world.service.start(NewJob(ANA, "C1", "Do it", "k", WayIn.COMMAND))
    await world.pass_time(60)
    assert tries(world, "post_card") == 1
    assert world.job_api.created == []
    assert world.chat.private == [CardNotPosted("UANA", "missing_scope", ("groups:history",), may_be_posted=True)]
