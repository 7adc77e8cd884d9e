"""Replies in quick succession are sent as one message, each with its own reaction."""

from dataclasses import replace
from functools import partial

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.requests.request import Person, Reply, Request, RequestContext, RequestState
from bot.errors import JobApiRejected, JobApiUncertain, JobApiUnreachable
from bot.jobapi.models import PromptFile
from bot.notices.notice import Reaction
from bot.store.store import Transaction

JOB = "job-1"
T = 1_700_000_100


def at(seconds: float) -> str:
    return f"{T + seconds:.6f}"


@pytest.fixture
async def ts(world: CoreWorld) -> str:
    """A running job, in a world where replies within 3 s are one message."""
    world.merge_seconds = 3.0
    world.assemble()
    return await world.started()


async def write(world: CoreWorld, ts: str, *replies: tuple[str, float], person: Person = ANA) -> None:
    """Replies; recorded, prepared and due."""
    for words, seconds in replies:
        await world.reply(ts, words, at(seconds), person)
    await world.step(world.request_preparer)
    world.clock.advance(3.5)


async def edit(world: CoreWorld, ts: str, seconds: float, words: str, edited: float) -> None:
    """A new version of a reply; without text, it was deleted."""
    reply = Reply(ANA, "C1", ts, at(seconds), words, edited_at=at(edited), withdrawn=not words)
    assert await world.service.revise(reply)


async def rows(world: CoreWorld, ts: str) -> list[Request]:
    thread = await world.thread(ts)

    async def work(tx: object) -> list[Request]:
        found: list[Request] = []
        for seconds in range(20):
            found += await tx.requests.find_by_reply(thread.id, at(seconds))  # type: ignore[attr-defined]  # a transaction
        return found

    return await world.store.transact(work)


async def test_rapid_replies_of_one_person_are_merged(world: CoreWorld, ts: str) -> None:
    """In the order they were written; each is a separate row, and accepted."""
    await write(world, ts, ("One", 1), ("Two", 3), ("Three", 6), ("Late", 12))
    await world.settle()
    assert world.job_api.messages[JOB] == ["One\n\nTwo\n\nThree", "Late"]
    found = await rows(world, ts)
    assert [request.state for request in found] == [RequestState.ACCEPTED] * 4
    assert [request.merged_into for request in found] == ["", found[0].id, found[0].id, ""]
    assert [world.chat.reactions[at(seconds)] for seconds in (1, 3, 6, 12)] == [Reaction.ACCEPTED] * 4
    assert (await world.thread(ts)).state.round == 2


async def test_rapid_replies_do_not_overtake_another_persons(world: CoreWorld, ts: str) -> None:
    """Order is more important than saving calls."""
    await world.reply(ts, "Ben's", at(2), BEN)
    await write(world, ts, ("One", 1), ("Two", 3))
    await world.settle()
    assert world.job_api.messages[JOB] == ["One", "Ben's", "Two"]


async def test_merged_replies_share_the_outcome_of_the_first(world: CoreWorld, ts: str) -> None:
    """A refusal is reported once, and every reply has its reaction."""
    await write(world, ts, ("One", 1), ("Two", 2))
    world.job_api.faults = [JobApiRejected("no", words="no")]
    await world.step(world.request_sender)
    await world.pass_time(10)
    assert {request.state for request in await rows(world, ts)} == {RequestState.REJECTED}
    assert [message.kind for message in world.chat.messages].count("request_rejected") == 1
    assert [world.chat.reactions[at(seconds)] for seconds in (1, 2)] == [Reaction.PROBLEM] * 2


async def test_a_merged_reply_that_did_not_arrive_can_be_edited_and_deleted(world: CoreWorld, ts: str) -> None:
    """While the job API is out of reach; later replies join if they were written soon enough."""
    await write(world, ts, ("One", 1), ("Two", 2), ("Three", 3))
    world.job_api.faults = [JobApiUnreachable("down")]
    await world.step(world.request_sender)
    assert {request.merged_into for request in await rows(world, ts)} == {""}
    await edit(world, ts, 1, "", 20)
    await edit(world, ts, 3, "Three, better", 21)
    await world.reply(ts, "Four", at(4))
    await world.pass_time(10)
    assert world.job_api.messages[JOB] == ["Two\n\nThree, better\n\nFour"]
    assert [request.state for request in await rows(world, ts)] == [RequestState.WITHDRAWN] + [
        RequestState.ACCEPTED
    ] * 3


async def test_merged_replies_in_doubt_keep_their_words(world: CoreWorld, ts: str) -> None:
    """If the server executes a key once, it is repeated unchanged; new text is offered afterwards."""
    world.idempotent = True
    world.assemble()
    await write(world, ts, ("One", 1), ("Two", 2))
    world.job_api.faults = [JobApiUncertain("timeout")]
    await world.step(world.request_sender)
    await edit(world, ts, 2, "Two, changed", 20)
    await world.reply(ts, "Three", at(3))
    await world.pass_time(30)
    assert world.job_api.messages[JOB] == ["One\n\nTwo", "Three"]
    assert [message.kind for message in world.chat.private].count("reply_edited") == 1


async def test_a_merged_message_without_its_first_reply_is_not_sent_again(world: CoreWorld, ts: str) -> None:
    """Its person is told that there were several replies, and to write again what is still to be done."""
    world.job_api.faults = [JobApiUncertain("timeout")]
    await write(world, ts, ("One", 1), ("Two", 3))
    await world.settle()
    first, _ = await rows(world, ts)
    await edit(world, ts, 1, "", 20)
    await world.press_send_again(ANA, first.id, key="click/1")
    await world.pass_time(10)
    assert world.job_api.messages == {}
    assert world.chat.answers() == ["first_withdrawn"]


async def test_after_a_kill_the_same_message_is_repeated(world: CoreWorld, ts: str) -> None:
    """The group is fixed when it is claimed: later replies are not part of it."""
    world.idempotent = True
    world.assemble()
    await write(world, ts, ("One", 1), ("Two", 2))
    assert [len(item.merged) for item in await world.request_sender.claim(10)] == [1]
    world.restart("two")
    await world.reply(ts, "Three", at(3))
    await world.pass_time(60)
    assert world.job_api.messages[JOB] == ["One\n\nTwo", "Three"]


async def test_a_kill_is_reported_once_and_all_replies_can_be_sent_again(world: CoreWorld, ts: str) -> None:
    """If it is uncertain whether it arrived; the button sends the whole message."""
    await write(world, ts, ("One", 1), ("Two", 2))
    await world.request_sender.claim(10)
    world.restart("two")
    await world.pass_time(60)
    found = await rows(world, ts)
    assert {request.state for request in found} == {RequestState.UNCERTAIN}
    assert [message.kind for message in world.chat.messages].count("request_uncertain") == 1
    await world.press_send_again(ANA, found[0].id, key="again")
    await world.pass_time(10)
    assert world.job_api.messages[JOB] == ["One\n\nTwo"]
    assert {request.state for request in await rows(world, ts)} == {RequestState.ACCEPTED}


async def test_a_process_paused_past_its_lease_releases_merged_replies(world: CoreWorld, ts: str) -> None:
    """Nothing was sent, so all of it waits again and can be edited."""
    await write(world, ts, ("One", 1), ("Two", 2))
    claimed_at = world.clock.monotonic()
    (item,) = await world.request_sender.claim(10)
    world.clock.advance(25)
    await edit(world, ts, 1, "", 20)
    await world.request_sender.process(item, claimed_at)
    await world.pass_time(5)
    assert world.job_api.messages[JOB] == ["Two"]


async def test_a_follow_up_waits_while_another_could_join(world: CoreWorld, ts: str) -> None:
    """So it is due that long after its recording."""
    await world.reply(ts, "One", at(1))
    await world.settle()
    world.clock.advance(2.0)
    await world.reply(ts, "Two", at(3))
    await world.settle()
    assert world.job_api.messages[JOB] == []
    world.clock.advance(1.1)
    await world.settle()
    assert world.job_api.messages[JOB] == ["One\n\nTwo"]


async def test_replies_recorded_out_of_order_are_merged_in_written_order(world: CoreWorld, ts: str) -> None:
    """Slack may deliver them out of order."""
    await write(world, ts, ("Two", 2), ("One", 1))
    await world.settle()
    assert world.job_api.messages[JOB] == ["One\n\nTwo"]


async def test_merged_replies_are_requested_by_their_author(world: CoreWorld, ts: str) -> None:
    """The agent's questions go to that person."""
    await write(world, ts, ("One", 1), ("Two", 2), person=BEN)
    await world.step(world.request_sender)
    assert (await world.thread(ts)).state.people.asker_id == BEN.id


async def _prepare(request: Request, tx: Transaction) -> None:
    await tx.requests.prepared(request)


@pytest.mark.parametrize("takes_files", [True, False])
async def test_files_of_merged_replies_are_sent_with_the_message(
    world: CoreWorld, ts: str, *, takes_files: bool
) -> None:
    """Separated from the person's own text; files only if the job API accepts them."""
    world.job_api.files_taken = takes_files
    file = PromptFile("f1", "a.png", "image/png")
    await write(world, ts, ("One", 1), ("Two", 2))
    for request, context in zip(await rows(world, ts), ("Ben: yes", "Cleo: no"), strict=True):
        prepared = replace(request, context=RequestContext(context, (file,)))
        await world.store.transact(partial(_prepare, prepared))
    await world.settle()
    (sent,) = world.job_api.messages[JOB]
    assert sent.startswith("One\n\nTwo\n\nWhat follows")
    assert "Ben: yes\n\nCleo: no" in sent
    assert world.job_api.files[sent] == ((file,) if takes_files else ())
