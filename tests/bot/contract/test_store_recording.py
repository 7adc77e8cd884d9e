"""The store keeps everything recorded, once, whatever its content; edits and parts of a request, too."""

import asyncio
import json
from dataclasses import replace

import pytest
from support.fakes.attachments import holding
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    CARD,
    LEASE,
    Sql,
    StoreWorld,
    a_follow_up,
    a_post,
    a_start,
    a_thread,
)

from bot.domain.context import FetchedFile, FetchedParts, FetchedThread, ThreadPart
from bot.domain.messages import FileProblem, LinkPreview, QuotedFile, SlackFile, ThreadMessage
from bot.domain.requests.request import (
    Attachments,
    MessageVersion,
    Person,
    Reply,
    RequestState,
)
from bot.domain.threads.thread import Failure, ThreadState
from bot.notices.job import JobFinished, JobStarted
from bot.notices.notice import NewNotice, NoticeKey
from bot.service import Service
from bot.store.request_parts import ClaimedFile
from bot.store.store import Transaction

pytestmark = pytest.mark.either_database

HOSTILE = "a\0b \ud83d c \U0001f600 <!channel> \u202e\u200b" + "x" * 40_000
KEPT = "a\ufffdb \ufffd c \U0001f600 <!channel> \u202e\u200b" + "x" * 40_000


async def test_a_redelivery_is_refused_whatever_its_id(store: StoreWorld) -> None:
    await store.add(a_thread(), a_start())
    again = a_start(id="another", text="Another")
    assert not await store.transact(lambda tx: tx.requests.add(again))
    assert not await store.transact(lambda tx: tx.requests.add(a_start(source_key="another")))
    assert await store.transact(lambda tx: tx.requests.get("another")) is None


async def test_the_same_fact_is_recorded_as_one_notice(store: StoreWorld, sql: Sql) -> None:
    await store.add(a_thread(), say=[a_post("started", job="1"), a_post("started", job="2")])
    await store.say(a_post("started", job="3"))
    [(key, message)] = await sql("SELECT key, message FROM notices")
    assert (key, json.loads(message)["job_id"]) == ("t1/started", "1")
    assert await store.deliver_all() == ["t1/started"]
    await store.say(a_post("started", job="4"))
    assert await store.deliver_all() == []


async def test_an_end_drops_only_held_notices(store: StoreWorld, clock: FakeClock, sql: Sql) -> None:
    """Notices that were due, or belong to another thread, are posted before it."""
    held = replace(a_post("r1/active"), due_in=5.0)
    await store.add(a_thread(ts="17.1", card_ts="17.1"), say=[a_post("started")])
    await store.add(a_thread("t2", ts="17.2", card_ts="17.2"), say=[held])
    await store.say(held)
    clock.advance(4.9)
    await store.say(NewNotice(NoticeKey("r1/completed"), JobFinished()))
    assert {key for (key,) in await sql("SELECT key FROM notices")} == {"t1/started", "t1/r1/completed", "t2/r1/active"}


async def test_a_transaction_is_atomic(store: StoreWorld) -> None:
    async def work(tx: Transaction) -> None:
        await tx.threads.add(a_thread())
        await tx.notices.add("t1", CARD)
        raise LookupError("the work's own")

    with pytest.raises(LookupError, match="the work's own"):
        await store.transact(work)
    assert await store.transact(lambda tx: tx.threads.get("t1")) is None


async def test_any_text_is_stored_as_far_as_the_database_allows(store: StoreWorld) -> None:
    await store.add(
        a_thread(prompt=HOSTILE),
        a_start(text=HOSTILE, source_key=HOSTILE, problem=HOSTILE),
        say=[a_post(HOSTILE, repository=HOSTILE)],
    )
    await store.save("t1", ThreadState(failure=Failure(problem_text=HOSTILE)), poll_in=0.0)
    thread, request = await store.get_thread(), await store.get_request("t1-start")
    assert (thread.prompt, thread.state.failure.problem_text) == (KEPT, KEPT)
    assert (request.text, request.problem) == (KEPT, KEPT)
    assert not await store.transact(lambda tx: tx.requests.add(a_start(id="another", source_key=HOSTILE)))
    await store.say(a_post(HOSTILE))
    [claimed] = await store.claim_notices()
    assert claimed.notice.message == JobStarted("job-1", KEPT)
    assert claimed.notice.key.startswith("t1/a\ufffdb")
    assert await store.transact(lambda tx: tx.threads.find_by_card("C\0", HOSTILE)) is None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE requests SET state = 'lost'",
        "UPDATE requests SET due_at = NULL",
        "UPDATE requests SET claimed_by = 'one'",
        "UPDATE requests SET attempts = -1",
        "UPDATE requests SET thread_id = 'none'",
        "UPDATE notices SET thread_id = 'none'",
        "UPDATE notices SET state = 'done'",
        "UPDATE notices SET due_at = 1e300",
        "UPDATE polls SET claimed_by = 'one', claimed_until = 1",
        "UPDATE threads SET revision = -1",
        "UPDATE threads SET created_at = -1",
        "UPDATE threads SET state = NULL",
    ],
)
async def test_the_database_rejects_invalid_rows(store: StoreWorld, sql: Sql, statement: str) -> None:
    await store.add(a_thread(), a_start(), say=[CARD])
    with pytest.raises(Exception, match=r"(?i)constraint"):
        await sql(statement)


FIRST, SECOND = (f"1700000000.00000{n}" for n in (1, 2))
ONE = f"t1-{FIRST}"
FILES = [SlackFile(f"F{n}", f"{n}.png", "image/png", elsewhere=n == 1) for n in range(3)]


async def claim(store: StoreWorld, owner: str = "one", limit: int = 9) -> list[ClaimedFile]:
    return list(await store.transact(lambda tx: tx.request_parts.claim(owner, lease=LEASE, limit=limit)))


async def waiting(store: StoreWorld, *, count: int = 3) -> None:
    """A follow-up that waits for these files, and one after it."""
    await store.watched()
    await store.add(a_follow_up(FIRST), a_follow_up(SECOND))
    await store.transact(lambda tx: tx.request_parts.to_upload(ONE, FILES[:count]))


async def test_each_file_is_claimed_separately_by_one_owner(store: StoreWorld) -> None:
    """However many workers claim concurrently."""
    await waiting(store)
    taken = await asyncio.gather(*(claim(store, owner, limit=1) for owner in ("one", "two", "three", "four")))
    assert len([item for items in taken for item in items]) + len(await claim(store, "five")) == 3
    assert await claim(store, "six") == []


async def test_prepared_parts_are_kept_until_the_request_proceeds(store: StoreWorld) -> None:
    """With any text and file names."""
    await store.watched()
    await store.add(a_follow_up(FIRST, state=RequestState.RECEIVED))
    message = ThreadMessage(
        "Ana", "a\0\ud800ß", "1.2", (FILES[0],), previews=(LinkPreview("t", "x", "https://x.example"),)
    )
    thread = FetchedThread(ThreadPart("1.1", "1.0", "1.3"), (message,))
    found = QuotedFile(FILES[0], "text", complete=False, problem=FileProblem.ELSEWHERE)
    parts = FetchedParts(thread, (FetchedFile(FILES[0], found),), 12.5)
    await store.transact(lambda tx: tx.request_parts.keep_fetched(ONE, parts))
    kept = await store.transact(lambda tx: tx.request_parts.fetched(ONE))
    assert (kept.files, kept.failing_since) == (parts.files, 12.5)
    assert kept.thread is not None
    assert kept.thread.messages is not None
    assert kept.thread.messages[0].previews == message.previews
    await store.settle(ONE, RequestState.WITHDRAWN)
    assert await store.transact(lambda tx: tx.request_parts.fetched(ONE)) == FetchedParts()


REPLY = "1700000002.000100"
EARLY = Reply(Person("UANA", "T1"), "C1", "1700000000.000100", REPLY, "first", holding("a.png", "", forwarded=True))


async def keep(store: StoreWorld, reply: Reply) -> bool:
    return await store.transact(lambda tx: tx.early_replies.keep(reply))


async def test_a_request_that_may_have_arrived_keeps_that_mark(store: StoreWorld, clock: FakeClock) -> None:
    await store.watched()
    await store.add(a_follow_up("1700000002.000100"), a_follow_up("1700000003.000100"))
    (lost,) = await store.claim_requests()
    assert not lost.request.uncertain
    clock.advance(31)
    (taken_over,) = await store.claim_requests()
    assert taken_over.uncertain
    assert taken_over.request.uncertain
    await store.settle(lost.request.id, RequestState.WAITING)
    assert (await store.get_request(lost.request.id)).uncertain
    await store.settle(lost.request.id, RequestState.ACCEPTED)
    (other,) = await store.claim_requests()
    assert not other.request.uncertain
    await store.settle(other.request.id, RequestState.UNCERTAIN, uncertain=True)
    await store.settle(other.request.id, RequestState.WAITING, afresh=True)
    assert (await store.get_request(other.request.id)).uncertain


async def test_a_claim_counts_as_a_try_unless_it_was_none_or_all_begins_anew(store: StoreWorld) -> None:
    """Preparing is counted by itself."""
    await store.watched()
    await store.add(request := a_follow_up("1700000002.000100"))
    counted: list[int] = []

    async def count() -> None:
        counted.append((await store.get_request(request.id)).attempts)

    async def save(state: RequestState) -> None:
        edited = replace(await store.get_request(request.id), state=state)
        await store.transact(lambda tx: tx.requests.save(edited))
        await count()

    for options in ({}, {"tried": False}):
        await store.claim_requests()
        await store.settle(request.id, RequestState.WAITING, **options)
        await count()
    await save(RequestState.RECEIVED)
    for options in ({}, {"afresh": True}):
        await store.claim_received()
        await store.settle(request.id, RequestState.RECEIVED, **options)
        await count()
        await save(RequestState.RECEIVED)
    assert counted == [1, 1, 0, 1, 1, 0, 0]


@pytest.mark.parametrize("reverse", [False, True])
async def test_the_newest_version_of_an_early_reply_is_kept(store: StoreWorld, *, reverse: bool) -> None:
    await store.add(a_thread(), say=[CARD])
    second = replace(EARLY, text="second", attachments=Attachments(), edited_at="1700000008.000100")
    versions = [EARLY, second, replace(second, text="third", edited_at="1700000009.000100")]
    for version in reversed(versions) if reverse else versions:
        assert await keep(store, version)
    taken = await store.transact(lambda tx: tx.early_replies.take("C1", EARLY.thread_ts))
    assert taken == [versions[-1]]


@pytest.mark.parametrize(
    "order", [("", "5.1", "6.1"), ("6.1", "5.1", ""), ("5.1", "", "6.1"), ("6.1", "", "5.1")], ids=str
)
async def test_only_the_newest_version_counts(store: StoreWorld, order: tuple[str, ...]) -> None:
    """Of the same message; a redelivered one counts again."""
    for number, edited_at in enumerate(order):
        expected = edited_at == max(order[: number + 1])
        for _ in range(2):
            version = MessageVersion("C1", "1.1", "UANA", edited_at)
            assert await store.transact(lambda tx, version=version: tx.message_versions.note(version)) == expected  # type: ignore[misc]
    other = MessageVersion("C1", "1.2", "UANA", "")
    assert await store.transact(lambda tx: tx.message_versions.note(other))
    assert await store.transact(lambda tx: tx.message_versions.note(replace(other, channel_id="C2")))


async def test_a_message_deleted_at_the_same_moment_starts_nothing(store: StoreWorld, sql: Sql) -> None:
    """On several connections: whichever is first, the other one sees its effect."""
    service = Service(store, on_commit=lambda: None)
    written = [f"17000000{number}.000100" for number in range(10, 40)]
    mentions = [replace(EARLY, thread_ts=f"{ts}1", message_ts=ts, mentions_us=True) for ts in written]
    gone = [replace(each, text="", edited_at="1700000099.000100", withdrawn=True) for each in mentions]
    both = [call for pair in zip(mentions, gone, strict=True) for call in pair]
    await asyncio.gather(*(service.revise(each) if each.withdrawn else service.receive(each) for each in both))
    assert await sql("SELECT state FROM requests WHERE state <> 'withdrawn'") == []


async def test_each_version_gets_one_private_answer_across_processes(store: StoreWorld) -> None:
    """An older version delivered later is not answered."""
    services = [Service(store, on_commit=lambda: None) for _ in range(3)]
    for edited_at in ("", "1700000009.000100"):
        version = MessageVersion("C1", REPLY, "UANA", edited_at)
        answers = await asyncio.gather(*(service.is_first_answer(version) for service in services))
        assert sorted(answers) == [False, False, True]
    assert not await services[0].is_first_answer(MessageVersion("C1", REPLY, "UANA", ""))
    assert await services[0].is_first_answer(MessageVersion("C1", "1700000003.000100", "UANA", ""))
