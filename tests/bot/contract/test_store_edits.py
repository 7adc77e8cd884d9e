"""Edited and deleted replies in the store."""

import asyncio
from dataclasses import replace

import pytest
from support.fakes.attachments import holding
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    CARD,
    Sql,
    a_follow_up,
    a_thread,
    claim_requests,
    get_request,
    settle,
    watched,
)

from bot.domain.requests.request import Attachments, MessageVersion, Person, Reply, Request, RequestState
from bot.service import Service
from bot.store.store import Store

pytestmark = pytest.mark.either_database

REPLY = "1700000002.000100"
EARLY = Reply(Person("UANA", "T1"), "C1", "1700000000.000100", REPLY, "first", holding("a.png", "", forwarded=True))


async def save_words(store: Store, request: Request) -> None:
    await store.transact(lambda tx: tx.requests.save(request))


async def keep(store: Store, reply: Reply) -> bool:
    return await store.transact(lambda tx: tx.early_replies.keep(reply))


async def test_a_withdrawn_request_is_not_due_until_it_is_restored(store: Store) -> None:
    await watched(store)
    await store.transact(lambda tx: tx.requests.add(a_follow_up(REPLY)))
    request = await get_request(store, f"t1-{REPLY}")
    await save_words(store, replace(request, state=RequestState.WITHDRAWN, text=""))
    assert await claim_requests(store) == []
    await save_words(store, replace(request, state=RequestState.WAITING, text="again"))
    (claimed,) = await claim_requests(store)
    assert claimed.request.text == "again"


async def test_a_request_that_may_have_arrived_keeps_that_mark(store: Store, clock: FakeClock) -> None:
    await watched(store)
    await store.transact(lambda tx: tx.requests.add(a_follow_up("1700000002.000100")))
    await store.transact(lambda tx: tx.requests.add(a_follow_up("1700000003.000100")))
    (lost,) = await claim_requests(store)
    assert not lost.request.uncertain
    clock.advance(31)
    (taken_over,) = await claim_requests(store)
    assert taken_over.uncertain
    assert taken_over.request.uncertain
    await settle(store, lost.request.id, RequestState.WAITING)
    assert (await get_request(store, lost.request.id)).uncertain
    await settle(store, lost.request.id, RequestState.ACCEPTED)
    (other,) = await claim_requests(store)
    assert not other.request.uncertain
    await settle(store, other.request.id, RequestState.UNCERTAIN, uncertain=True)
    await settle(store, other.request.id, RequestState.WAITING, afresh=True)
    assert (await get_request(store, other.request.id)).uncertain


@pytest.mark.parametrize("reverse", [False, True])
async def test_the_newest_version_of_an_early_reply_is_kept(store: Store, *, reverse: bool) -> None:
    await store.transact(lambda tx: tx.threads.add(a_thread()))
    await store.transact(lambda tx: tx.notices.add("t1", CARD))
    second = replace(EARLY, text="second", attachments=Attachments(), edited_at="1700000008.000100")
    versions = [EARLY, second, replace(second, text="third", edited_at="1700000009.000100")]
    for version in reversed(versions) if reverse else versions:
        assert await keep(store, version)
    taken = await store.transact(lambda tx: tx.early_replies.take("C1", EARLY.thread_ts))
    assert taken == [versions[-1]]


async def test_an_early_reply_is_kept_unchanged_and_can_be_withdrawn_by_message(store: Store) -> None:
    await store.transact(lambda tx: tx.threads.add(a_thread()))
    await store.transact(lambda tx: tx.notices.add("t1", CARD))
    other = replace(EARLY, message_ts="1700000003.000100")
    gone = Reply(Person("", ""), "C1", "", REPLY, "", edited_at="1700000009.000100", withdrawn=True)
    for reply in (EARLY, other, gone):
        assert await keep(store, reply)
    assert not await keep(store, replace(gone, message_ts="1700000005.000100"))
    withdrawn, kept = await store.transact(lambda tx: tx.early_replies.take("C1", EARLY.thread_ts))
    assert kept == other
    assert (withdrawn.withdrawn, withdrawn.text, withdrawn.person) == (True, "", EARLY.person)


@pytest.mark.parametrize(
    "order", [("", "5.1", "6.1"), ("6.1", "5.1", ""), ("5.1", "", "6.1"), ("6.1", "", "5.1")], ids=str
)
async def test_only_the_newest_version_counts(store: Store, order: tuple[str, ...]) -> None:
    """Of the same message; a redelivered one counts again."""
    for number, edited_at in enumerate(order):
        expected = edited_at == max(order[: number + 1])
        for _ in range(2):
            version = MessageVersion("C1", "1.1", "UANA", edited_at)
            assert await store.transact(lambda tx, version=version: tx.message_versions.note(version)) == expected  # type: ignore[misc]
    other = MessageVersion("C1", "1.2", "UANA", "")
    assert await store.transact(lambda tx: tx.message_versions.note(other))
    assert await store.transact(lambda tx: tx.message_versions.note(replace(other, channel_id="C2")))


async def test_a_message_deleted_at_the_same_moment_starts_nothing(store: Store, sql: Sql) -> None:
    """On several connections: whichever is first, the other one sees its effect."""
    service = Service(store, on_commit=lambda: None)
    written = [f"17000000{number}.000100" for number in range(10, 40)]
    mentions = [replace(EARLY, thread_ts=f"{ts}1", message_ts=ts, mentions_us=True) for ts in written]
    gone = [replace(each, text="", edited_at="1700000099.000100", withdrawn=True) for each in mentions]
    both = [call for pair in zip(mentions, gone, strict=True) for call in pair]
    await asyncio.gather(*(service.revise(each) if each.withdrawn else service.receive(each) for each in both))
    assert await sql("SELECT state FROM requests WHERE state <> 'withdrawn'") == []


async def test_each_version_gets_one_private_answer_across_processes(
    store: Store,
) -> None:
    """An older version delivered later is not answered."""
    services = [Service(store, on_commit=lambda: None) for _ in range(3)]
    for edited_at in ("", "1700000009.000100"):
        version = MessageVersion("C1", REPLY, "UANA", edited_at)
        answers = await asyncio.gather(*(service.is_first_answer(version) for service in services))
        assert sorted(answers) == [False, False, True]
    assert not await services[0].is_first_answer(MessageVersion("C1", REPLY, "UANA", ""))
    assert await services[0].is_first_answer(MessageVersion("C1", "1700000003.000100", "UANA", ""))
