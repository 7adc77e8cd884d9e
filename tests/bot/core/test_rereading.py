"""Requests that waited while Pagehand heard nothing: their messages are read again before they go out."""

import asyncio
import math

import pytest
from support.fakes.ports import FakeRequesters
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.requests.new_jobs import NewJob, request_id, source_key
from bot.domain.requests.request import Reply, RequestState, WayIn
from bot.domain.slack_limits import LIMITED_PATIENCE, PATIENCE
from bot.errors import ChatError, ChatNotInChannel, ChatRateLimited, ChatUnreachable, JobApiUnreachable
from bot.notices.notice import Reaction

pytestmark = pytest.mark.promise("re-read")

TS = "1700000005.000100"
EDITED = "1700000006.000200"


async def waiting(world: CoreWorld, *words: str) -> str:
    """A job's thread whose replies could not be sent when they were written, before a restart."""
    ts = await world.started()
    for number, text in enumerate(words):
        await world.reply(ts, text, message(number))
        says(world, ts, message(number))
    if words:
        world.job_api.faults = [JobApiUnreachable("down")]
        world.clock.advance(1.5)
        await world.step(world.request_sender)
    await restart(world)
    return ts


async def restart(world: CoreWorld, *, wait: float | None = None) -> None:
    world.clock.advance(10)
    world.heard_since = world.clock.time
    world.restart("two")
    await world.wait(wait)


def message(number: int) -> str:
    return f"{1_700_000_005 + number}.000100"


def says(world: CoreWorld, thread_ts: str, message_ts: str, text: str | None = None, at: str = EDITED) -> None:
    """What Slack shows: a message as it was written, or with other words."""
    shown = None if text is None else Reply(ANA, "C1", thread_ts, message_ts, text, edited_at=at)
    world.reading.messages.setdefault(("C1", thread_ts), {})[message_ts] = shown


def deletes(world: CoreWorld, thread_ts: str, message_ts: str = TS) -> None:
    del world.reading.messages["C1", thread_ts][message_ts]


def looked_up(world: CoreWorld) -> list[str]:
    return [each for each in world.reading.asked if each.startswith("versions")]


@pytest.mark.parametrize("now", ["first", "second", ""], ids=["unchanged", "edited", "deleted"])
async def test_a_waiting_reply_goes_out_as_it_is_then(world: CoreWorld, now: str) -> None:
    ts = await waiting(world, "first")
    match now:
        case "second":
            says(world, ts, TS, now)
        case "":
            deletes(world, ts)
    await world.pass_time(30)
    assert world.job_api.messages["job-1"] == ([now] if now else [])
    assert world.chat.reactions == ({TS: Reaction.ACCEPTED} if now else {})
    assert world.chat.private == []
    assert len(looked_up(world)) == 1


async def test_a_reply_that_was_only_received_is_read_again_before_it_is_prepared(world: CoreWorld) -> None:
    ts = await world.started()
    await world.receive(Reply(ANA, "C1", ts, TS, "first"))
    says(world, ts, TS, "second")
    await restart(world, wait=30)
    assert world.job_api.messages["job-1"] == ["second"]
    assert len(looked_up(world)) == 1


async def test_nothing_is_read_again_without_a_gap(world: CoreWorld) -> None:
    ts = await world.started()
    await world.reply(ts, "first", TS)
    says(world, ts, TS, "second")
    await world.pass_time(30)
    assert world.job_api.messages["job-1"] == ["first"]
    assert looked_up(world) == []


async def test_a_reply_written_after_the_gap_is_not_read_again(world: CoreWorld) -> None:
    ts = await waiting(world)
    await world.reply(ts, "first", TS, wait=3)
    assert world.job_api.messages["job-1"] == ["first"]
    assert looked_up(world) == []


async def test_each_of_merged_replies_is_as_it_was_edited(world: CoreWorld) -> None:
    world.configure(merge_seconds=5.0)
    ts = await waiting(world, "one", "two", "three")
    says(world, ts, message(0), "eins")
    deletes(world, ts, message(1))
    await world.pass_time(60)
    assert world.job_api.messages["job-1"] == ["eins\n\nthree"]
    assert len(looked_up(world)) == 1


async def test_a_reply_newer_than_the_last_look_up_is_not_taken_for_deleted(world: CoreWorld) -> None:
    """While nobody knows whether Slack's events come, each look-up is used for some seconds."""
    ts = await waiting(world, "first")
    world.heard_since = math.inf
    await world.step(world.request_sender)
    world.clock.advance(1)
    says(world, ts, message(1))
    await world.reply(ts, "second", message(1), wait=30)
    assert world.job_api.messages["job-1"] == ["first", "second"]


async def test_an_older_reply_that_is_checked_meanwhile_is_not_taken_for_deleted(world: CoreWorld) -> None:
    """The look-up for the newer one reaches back only to it, and the older one waits for it."""
    ts = await world.started()
    for number, text in enumerate(("first", "second")):
        says(world, ts, message(number))
        await world.receive(Reply(ANA, "C1", ts, message(number), text))
    await restart(world)
    items = await world.request_preparer.claim(10)
    newest_first = sorted(items, key=lambda item: item.request.written_at, reverse=True)
    await asyncio.gather(*(world.request_preparer.process(item, world.clock.monotonic()) for item in newest_first))
    await world.pass_time(30)
    assert world.job_api.messages["job-1"] == ["first", "second"]
    assert len(looked_up(world)) == 2


async def asked(world: CoreWorld, words: str) -> None:
    await world.ask(NewJob(ANA, "C1", words, f"message/C1/{TS}", WayIn.MENTION, thread_ts=TS, message_ts=TS))
    says(world, TS, TS)
    await restart(world)


@pytest.mark.parametrize("now", ["second", ""], ids=["edited", "deleted"])
async def test_a_start_goes_out_as_its_message_is_then(world: CoreWorld, now: str) -> None:
    """If it is gone, not even a card is posted."""
    await asked(world, "first")
    if now:
        world.reading.messages["C1", TS][TS] = Reply(ANA, "C1", "", TS, now, edited_at=EDITED, mentions_us=True)
    else:
        deletes(world, TS)
    await world.pass_time(30)
    assert world.job_api.created == ([now] if now else [])
    assert bool(world.chat.messages) == bool(now)


async def test_a_command_was_made_from_no_message(world: CoreWorld) -> None:
    await world.ask(NewJob(ANA, "C1", "Do it", "k1", WayIn.COMMAND))
    await restart(world, wait=30)
    assert world.job_api.created == ["Do it"]
    assert looked_up(world) == []


async def test_a_line_of_a_direct_message_is_looked_up_outside_its_threads(world: CoreWorld) -> None:
    world.chat.joined.add("D1")
    ts = await world.started(channel="D1")
    await world.reply(ts, "first", TS, channel="D1")
    world.reading.messages["D1", ts] = {}
    world.reading.messages["D1", ""] = {TS: Reply(ANA, "D1", "", TS, "second", edited_at=EDITED)}
    await restart(world, wait=30)
    assert world.job_api.messages["job-1"] == ["second"]


async def test_what_may_have_been_sent_is_not_read_again(world: CoreWorld) -> None:
    ts = await world.started()
    await world.reply(ts, "first", TS)
    world.clock.advance(1.5)
    await world.request_sender.claim(10)  # and dies
    world.reading.messages["C1", ts] = {}
    await restart(world, wait=60)
    assert looked_up(world) == []
    assert await state(world) is RequestState.UNCERTAIN


async def state(world: CoreWorld) -> RequestState:
    request = await world.store.transact(lambda tx: tx.requests.get(request_id(source_key("C1", TS))))
    assert request is not None
    return request.state


async def test_what_another_process_was_preparing_when_it_died_is_read_again(world: CoreWorld) -> None:
    """It may have been told of an edit that it did not record."""
    ts = await world.started()
    await world.receive(Reply(ANA, "C1", ts, TS, "first"))
    await world.request_preparer.claim(10)  # and dies
    says(world, ts, TS, "second")
    world.restart("two")
    await world.pass_time(60)
    assert world.job_api.messages["job-1"] == ["second"]


@pytest.mark.first(error=1)
@pytest.mark.parametrize(("error", "end"), [(ChatUnreachable("x"), PATIENCE), (ChatRateLimited("x"), LIMITED_PATIENCE)])
async def test_a_reply_waits_while_slack_cannot_be_asked_but_not_for_ever(
    world: CoreWorld, error: ChatError, end: float, caplog: pytest.LogCaptureFixture
) -> None:
    ts = await waiting(world, "first")
    says(world, ts, TS, "second")
    world.reading.refused["versions"] = error
    await world.pass_time(end - 10)
    assert world.job_api.messages["job-1"] == []
    caplog.clear()
    await world.pass_time(90)
    assert world.job_api.messages["job-1"] == ["first"]
    assert "requests go out as recorded" in caplog.text
    assert len(looked_up(world)) > 5


async def test_a_reply_hidden_by_slack_goes_out_as_recorded(world: CoreWorld, caplog: pytest.LogCaptureFixture) -> None:
    ts = await waiting(world, "first")
    says(world, ts, TS, "second")
    world.reading.refused["versions"] = ChatNotInChannel("not_in_channel")
    await world.pass_time(5)
    assert world.job_api.messages["job-1"] == ["first"]
    assert "requests go out as recorded" in caplog.text
    assert len(looked_up(world)) == 1


async def test_who_asked_is_sent_after_slack_could_not_be_asked(world: CoreWorld) -> None:
    """What was handed back was not tried, so nothing went out without its requester."""
    world.configure(requesters=FakeRequesters(), idempotent=True)
    ts = await world.started()
    await world.reply(ts, "first", TS)
    says(world, ts, TS)
    await restart(world)
    world.reading.refused["versions"] = ChatUnreachable("timeout")
    await world.pass_time(20)
    world.reading.refused.clear()
    await world.pass_time(20)
    assert world.job_api.messages["job-1"] == ["first"]
    assert [each.id for each in world.job_api.requesters if each] == [ANA.id, ANA.id]


async def test_an_edit_that_is_not_its_authors_holds_nothing_up(world: CoreWorld) -> None:
    ts = await waiting(world, "first")
    shown = Reply(BEN, "C1", ts, TS, "second", edited_at=EDITED)
    world.reading.messages["C1", ts][TS] = shown
    await world.pass_time(30)
    assert world.job_api.messages["job-1"] == ["first"]
