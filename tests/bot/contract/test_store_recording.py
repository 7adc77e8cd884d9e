"""The store keeps everything recorded, once, whatever its content."""

import json
from dataclasses import replace

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    CARD,
    JOB,
    Sql,
    a_follow_up,
    a_post,
    a_start,
    a_thread,
    add,
    claim_notices,
    claim_polls,
    deliver_all,
    get_request,
    get_thread,
    save,
    say,
)

from bot.domain.jobs.job import Problem
from bot.domain.requests.request import RejectionReason, RequestKind, RequestState
from bot.domain.threads.thread import Announcements, Failure, ThreadState, UnexplainedRejection, Work
from bot.notices.job import JobFinished, JobStarted, PullRequestFound
from bot.notices.notice import NewNotice, NoticeKey
from bot.notices.requests import RequestRejected, RequestSummary
from bot.store.store import Store, Transaction

pytestmark = pytest.mark.either_database

HOSTILE = "a\0b \ud83d c \U0001f600 <!channel> \u202e\u200b" + "x" * 40_000
KEPT = "a\ufffdb \ufffd c \U0001f600 <!channel> \u202e\u200b" + "x" * 40_000


async def test_a_thread_is_recorded_once(store: Store) -> None:
    await add(store, a_thread())
    assert not await store.transact(lambda tx: tx.threads.add(a_thread(prompt="Another")))
    assert (await get_thread(store)).prompt == "Do it"


async def test_a_redelivery_is_refused_whatever_its_id(store: Store) -> None:
    await add(store, a_thread(), a_start())
    again = a_start(id="another", text="Another")
    assert not await store.transact(lambda tx: tx.requests.add(again))
    assert not await store.transact(lambda tx: tx.requests.add(a_start(source_key="another")))
    assert await store.transact(lambda tx: tx.requests.get("another")) is None


async def test_follow_ups_come_in_the_order_they_were_written(store: Store) -> None:
    late, early = a_follow_up("1700000009.000100"), a_follow_up("1700000008.999999")
    taken = a_follow_up("1700000001.000100", state=RequestState.ACCEPTED)
    await add(store, a_thread(), a_start(), late, taken, early)
    assert await store.transact(lambda tx: tx.requests.waiting_follow_ups("t1")) == [early, late]


A_REJECTION = RequestRejected(RequestSummary("r1", "UANA", RequestKind.FOLLOW_UP, "More"), RejectionReason.API, "no")


async def test_a_thread_state_is_saved_with_a_new_revision(store: Store, clock: FakeClock) -> None:
    state = ThreadState(
        job=replace(JOB, status="completed", pr_link="https://example.com/1"),
        round=2,
        announcements=Announcements(
            announced=frozenset({JobFinished.key(2), PullRequestFound.key("https://example.com/1")}),
            links=("https://example.com/1",),
            finished_before=True,
            unexplained=(UnexplainedRejection(NoticeKey("r1/refused/1"), A_REJECTION),),
        ),
        failure=Failure(
            problem=Problem.RATE_LIMITED, problem_until=1_700_000_040, problem_text="no answer", outage_since=12.5
        ),
        work=Work(changed_at=3.25),
    )
    await add(store, a_thread())
    await save(store, "t1", state, poll_in=2.0)
    thread = await get_thread(store)
    assert (thread.state, thread.revision) == (state, 1)
    assert not await claim_polls(store)
    clock.advance(2.0)
    assert [item.thread for item in await claim_polls(store)] == [thread]


async def test_the_same_fact_is_recorded_as_one_notice(store: Store, sql: Sql) -> None:
    await add(store, a_thread(), say=[a_post("started", job="1"), a_post("started", job="2")])
    await say(store, a_post("started", job="3"))
    [(key, message)] = await sql("SELECT key, message FROM notices")
    assert (key, json.loads(message)["job_id"]) == ("t1/started", "1")
    assert await deliver_all(store) == ["t1/started"]
    await say(store, a_post("started", job="4"))
    assert await deliver_all(store) == []


HELD = replace(a_post("r1/active"), due_in=5.0)
END = NewNotice(NoticeKey("r1/completed"), JobFinished())


async def test_an_end_drops_only_held_notices(store: Store, clock: FakeClock, sql: Sql) -> None:
    """Notices that were due, or belong to another thread, are posted before it."""
    await add(store, a_thread(ts="17.1", card_ts="17.1"), say=[a_post("started")])
    await add(store, a_thread("t2", ts="17.2", card_ts="17.2"), say=[HELD])
    await say(store, HELD)
    clock.advance(4.9)
    await say(store, END)
    assert {key for (key,) in await sql("SELECT key FROM notices")} == {"t1/started", "t1/r1/completed", "t2/r1/active"}


async def test_a_notice_held_long_enough_is_posted_before_the_end(store: Store, clock: FakeClock) -> None:
    """Although no worker has claimed it yet."""
    await add(store, a_thread(ts="17.1", card_ts="17.1"), say=[HELD])
    assert await deliver_all(store) == []
    clock.advance(5.0)
    await say(store, END)
    assert await deliver_all(store) == ["t1/r1/active", "t1/r1/completed"]


async def test_a_notice_is_identified_by_its_key_in_its_thread(store: Store) -> None:
    key = "click/T1/" + "1.2.abc" * 99
    await add(store, a_thread(), say=[a_post(key)])
    assert await store.transact(lambda tx: tx.notices.is_open("t1", NoticeKey(key)))
    assert not await store.transact(lambda tx: tx.notices.is_open("t1", NoticeKey(key[:-1])))
    assert not await store.transact(lambda tx: tx.notices.is_open("t2", NoticeKey(key)))


async def test_a_transaction_is_atomic(store: Store) -> None:
    async def work(tx: Transaction) -> None:
        await tx.threads.add(a_thread())
        await tx.notices.add("t1", CARD)
        raise LookupError("the work's own")

    with pytest.raises(LookupError, match="the work's own"):
        await store.transact(work)
    assert await store.transact(lambda tx: tx.threads.get("t1")) is None


async def test_any_text_is_stored_as_far_as_the_database_allows(store: Store) -> None:
    await add(
        store,
        a_thread(prompt=HOSTILE),
        a_start(text=HOSTILE, source_key=HOSTILE, problem=HOSTILE),
        say=[a_post(HOSTILE, repository=HOSTILE)],
    )
    await save(store, "t1", ThreadState(failure=Failure(problem_text=HOSTILE)), poll_in=0.0)
    thread, request = await get_thread(store), await get_request(store, "t1-start")
    assert (thread.prompt, thread.state.failure.problem_text) == (KEPT, KEPT)
    assert (request.text, request.problem) == (KEPT, KEPT)
    assert not await store.transact(lambda tx: tx.requests.add(a_start(id="another", source_key=HOSTILE)))
    await say(store, a_post(HOSTILE))
    [claimed] = await claim_notices(store)
    assert claimed.notice.message == JobStarted("job-1", KEPT)
    assert claimed.notice.key.startswith("t1/a\ufffdb")
    assert await store.transact(lambda tx: tx.threads.find_by_card("C\0", HOSTILE)) is None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE requests SET state = 'lost'",
        "UPDATE requests SET kind = 'wish'",
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
async def test_the_database_rejects_invalid_rows(store: Store, sql: Sql, statement: str) -> None:
    await add(store, a_thread(), a_start(), say=[CARD])
    with pytest.raises(Exception, match=r"(?i)constraint"):
        await sql(statement)


async def test_deleting_a_thread_deletes_all_its_rows(store: Store, sql: Sql) -> None:
    await add(store, a_thread(), a_start(), say=[CARD])
    await sql("DELETE FROM threads")
    for table in ("polls", "requests", "notices"):
        assert await sql(f"SELECT * FROM {table}") == []  # noqa: S608 - three fixed names
