"""Results count only while their owner holds the claim, and only for what was claimed, in any order."""

import json
import logging
from dataclasses import replace

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    CARD,
    LEASE,
    Sql,
    StoreWorld,
    a_follow_up,
    a_post,
    a_reaction,
    a_start,
    a_thread,
    changed,
    unchanged,
)

from bot.domain.delivery import ReactionProgress
from bot.domain.requests.request import RejectionReason, RequestState
from bot.errors import StoreError
from bot.notices.notice import Delivery, NewNotice, NoticeKey, PostOutdated, Reaction, ReactionChanged
from bot.notices.requests import RequestRejected, RequestSummary
from bot.store.claims import PATIENCE
from bot.store.notice_queue import ClaimedNotice
from bot.store.store import Transaction

pytestmark = pytest.mark.either_database

LASTING = [CARD, a_reaction("m", "eyes")]


async def test_a_notice_is_given_up_and_the_next_one_proceeds(store: StoreWorld, sql: Sql) -> None:
    await store.add(a_thread(), say=[a_post("a"), a_post("b")])
    [claimed] = await store.claim_notices()
    assert not await store.transact(lambda tx: tx.notices.give_up(claimed.notice, "two", problem="is_archived"))
    assert await store.transact(lambda tx: tx.notices.give_up(claimed.notice, "one", problem="is_archived"))
    assert await sql("SELECT state, problem FROM notices ORDER BY id LIMIT 1") == [("given_up", "is_archived")]
    assert await store.deliver_all() == ["t1/b"]


@pytest.mark.parametrize("given_up", [False, True])
@pytest.mark.parametrize("notice", LASTING, ids=["card", "mark"])
async def test_a_newer_revision_stays_open_when_an_older_is_delivered_or_given_up(
    store: StoreWorld, notice: NewNotice, *, given_up: bool
) -> None:
    await store.add(a_thread(), say=[notice])
    [older] = await store.claim_notices()
    await store.say(notice)
    assert not await store.claim_notices()
    if given_up:
        assert await store.transact(lambda tx: tx.notices.give_up(older.notice, "one", problem="msg_too_long"))
    else:
        assert await store.done(older)
    [newer] = await store.claim_notices()
    assert (newer.notice.revision, newer.notice.id, newer.notice.attempts) == (1, older.notice.id, 1)
    assert await store.done(newer)
    assert not await store.claim_notices()


@pytest.mark.parametrize("notice", LASTING, ids=["card", "mark"])
async def test_a_lasting_notice_reopens_after_any_outcome(store: StoreWorld, notice: NewNotice) -> None:
    await store.add(a_thread(), say=[notice])
    [claimed] = await store.claim_notices()
    await store.transact(lambda tx: tx.notices.give_up(claimed.notice, "one", problem="is_archived"))
    await store.say(notice)
    [claimed] = await store.claim_notices()
    await store.transact(lambda tx: tx.notices.postpone(claimed.notice, "one", due_in=60.0, without_blocks=True))
    await store.say(notice)
    [claimed] = await store.claim_notices()
    assert (claimed.notice.revision, claimed.notice.attempts, claimed.notice.without_blocks) == (2, 1, False)


OUTDATED = NewNotice(NoticeKey("a"), PostOutdated())


async def test_an_outdated_post_is_due_again_with_the_place_that_it_has(store: StoreWorld, sql: Sql) -> None:
    """Also while it is being posted; one that is unknown, or was given up before it was posted, stays as it is."""
    await store.add(a_thread(), say=[OUTDATED, a_post("a"), a_post("b")])
    [claimed] = await store.claim_notices()
    assert await store.transact(lambda tx: tx.notices.posted_ts("t1", OUTDATED.key)) == ""
    await store.say(OUTDATED)
    assert not await store.claim_notices()
    assert await store.done(claimed, ts="17.5")
    [again] = await store.claim_notices()
    assert (again.notice.id, again.notice.posted_ts, again.notice.revision) == (claimed.notice.id, "17.5", 1)
    assert await store.transact(lambda tx: tx.notices.posted_ts("t1", OUTDATED.key)) == "17.5"
    assert await store.done(again, ts="17.5")
    await store.say(OUTDATED)
    assert await store.deliver_all() == ["t1/a", "t1/b"]
    await sql("UPDATE notices SET state = 'given_up', posted_ts = NULL WHERE key = 't1/a'")
    await store.say(OUTDATED)
    assert not await store.claim_notices()


async def test_a_card_in_doubt_stays_uncertain_until_its_ts_is_known(store: StoreWorld, clock: FakeClock) -> None:
    await store.add(a_thread(), say=[CARD])
    [claimed] = await store.claim_notices()
    await store.transact(lambda tx: tx.notices.postpone(claimed.notice, "one", due_in=0.0, uncertain=True))
    await store.say(CARD)
    [claimed] = await store.claim_notices()
    assert claimed.notice.uncertain
    await store.transact(lambda tx: tx.threads.set_card("t1", "17.1"))
    await store.say(CARD)
    await store.done(claimed, ts="17.1")
    [claimed] = await store.claim_notices()
    assert not claimed.notice.uncertain
    clock.advance(LEASE)
    await store.claim_notices("two")
    await store.say(CARD)
    clock.advance(LEASE)
    assert len(await store.claim_notices()) == 1


@pytest.mark.parametrize("change", [unchanged, changed])
async def test_a_poll_older_than_the_saved_state_is_dropped_and_repeated(store: StoreWorld, change: type) -> None:
    await store.watched()
    [claimed] = await store.claim_polls()
    await store.save("t1", replace(claimed.state, round=7), poll_in=30.0)
    assert await store.save_polls(change(claimed)) == 0
    assert (await store.get_thread()).state.round == 7
    assert not await store.claim_notices()
    assert not await store.claim_polls()  # due at the time set by save_known, not by the dropped poll


async def test_a_job_is_not_polled_again_while_a_poll_is_in_flight(store: StoreWorld) -> None:
    await store.watched()
    [claimed] = await store.claim_polls()
    await store.save("t1", replace(claimed.state, round=1), poll_in=0.0)
    assert not await store.claim_polls("two")
    assert await store.save_polls(unchanged(claimed)) == 0
    assert len(await store.claim_polls("two")) == 1


@pytest.mark.parametrize("change", [unchanged, changed])
async def test_a_poll_whose_claim_was_taken_over_is_dropped(store: StoreWorld, clock: FakeClock, change: type) -> None:
    await store.watched()
    [late] = await store.claim_polls("paused")
    clock.advance(LEASE)
    [claimed] = await store.claim_polls("alive")
    assert await store.save_polls(change(late), owner="paused") == 0
    assert not await store.claim_polls("third")
    assert await store.save_polls(change(claimed), owner="alive") == 1


async def test_polls_are_saved_in_batches_independently(store: StoreWorld) -> None:
    for n in range(6):
        await store.watched(f"t{n}")
    claimed = {thread.id: thread for thread in await store.claim_polls()}
    await store.save("t4", replace(claimed["t4"].state, round=1), poll_in=0.0)
    polls = [
        unchanged(claimed["t5"]),
        changed(claimed["t4"], a_post("a")),
        changed(claimed["t3"], a_post("a"), not_found_count=3),
        unchanged(claimed["t2"], next_poll_in=0.0),
        changed(claimed["t1"], a_post("a"), not_found_count=1),
    ]
    assert await store.save_polls(*polls) == 4
    assert {thread.id for thread in await store.claim_polls("two")} == {"t2", "t4"}
    assert sorted(await store.deliver_all()) == ["t1/a", "t1/card", "t3/a", "t3/card"]
    assert (await store.get_thread("t3")).state.failure.not_found_count == 3


async def reacted(store: StoreWorld, item: ClaimedNotice, *shown: Reaction, done: bool) -> bool:
    return await store.transact(lambda tx: tx.notices.reacted(item.notice, "one", ReactionProgress(shown, done)))


async def test_a_partial_mark_is_known_to_the_next_attempt(store: StoreWorld) -> None:
    await store.add(a_thread(), say=[a_reaction("m", "eyes")])
    [first] = await store.claim_notices()
    assert (first.notice.reactions_shown, first.notice.reaction_added) == ((), False)
    assert await reacted(store, first, Reaction.RECORDED, done=True)
    assert not await store.claim_notices()
    await store.say(a_reaction("m", "white_check_mark"))
    [second] = await store.claim_notices()
    assert (second.notice.reactions_shown, second.notice.reaction_added) == ((Reaction.RECORDED,), False)
    assert await reacted(store, second, Reaction.RECORDED, Reaction.ACCEPTED, done=False)
    [third] = await store.claim_notices()
    assert third.notice.reactions_shown == (Reaction.RECORDED, Reaction.ACCEPTED)
    assert (third.notice.reaction_added, third.notice.attempts) == (True, 1)
    await store.transact(lambda tx: tx.notices.postpone(third.notice, "one", due_in=0.0))
    [again] = await store.claim_notices()
    assert (again.notice.reactions_shown, again.notice.reaction_added) == (third.notice.reactions_shown, True)


async def test_a_mark_in_doubt_stays_so_over_a_failure(store: StoreWorld, clock: FakeClock) -> None:
    """The first attempt may have added the mark that was replaced during the second."""
    await store.add(a_thread(), say=[a_reaction("m", "eyes")])
    await store.claim_notices("dead")
    clock.advance(LEASE)
    [second] = await store.claim_notices()
    await store.say(a_reaction("m", "white_check_mark"))
    await store.transact(lambda tx: tx.notices.postpone(second.notice, "one", due_in=0.0))
    [third] = await store.claim_notices()
    assert third.notice.reactions_shown is None


async def test_a_postponed_notice_is_due_at_once_when_something_newer_is(store: StoreWorld, clock: FakeClock) -> None:
    await store.add(a_thread(), say=[replace(a_reaction("m", "eyes"), due_in=5.0)])
    assert not await store.claim_notices()
    await store.say(a_reaction("m", "white_check_mark"))
    [claimed] = await store.claim_notices()
    assert claimed.notice.message == ReactionChanged("m", Reaction.ACCEPTED)


async def test_after_the_lease_a_takeover_finds_the_same_merged_requests(store: StoreWorld, clock: FakeClock) -> None:
    """None of them is claimed alone; once claimed again, they are known to be in doubt."""
    first, second, third = (f"1700000000.00000{n}" for n in (1, 2, 3))
    await store.watched()
    await store.add(*map(a_follow_up, (first, second, third)))
    [claimed] = await store.claim_requests()

    async def merge(tx: Transaction) -> None:
        following = await tx.requests.follow_ups_after(claimed.request, limit=1)
        await tx.requests.merge(claimed.request, following, "one", lease=LEASE)

    await store.transact(merge)
    clock.advance(LEASE + 1)
    [again] = await store.claim_requests("two")
    assert (again.request.id, again.uncertain) == (f"t1-{first}", True)

    async def merge_again(tx: Transaction) -> list[str]:
        others = await tx.requests.merged_into(again.request)
        await tx.requests.merge(again.request, others, "two", lease=LEASE)
        return [request.id for request in others]

    assert await store.transact(merge_again) == [f"t1-{second}"]
    assert (await store.get_request(f"t1-{second}")).uncertain
    assert await store.transact(lambda tx: tx.requests.claimed(a_follow_up(second), "two", RequestState.SENDING))


THREADS = ("t1", "t2", "t3", "t4")


@pytest.mark.parametrize("limit", [1, 3, 9])
async def test_the_most_overdue_come_first_and_requests_of_threads_in_turn(
    store: StoreWorld, sql: Sql, limit: int
) -> None:
    for name in reversed(THREADS):
        await store.watched(name)
        await store.deliver_all()
        await store.add(a_follow_up("5.1", name))
    for name in reversed(THREADS):
        await store.say(a_post("a"), thread=name)
    for overdue, name in enumerate(reversed(THREADS)):
        for table in ("notices", "polls"):
            await sql(f"UPDATE {table} SET due_at = {1000 - overdue} WHERE thread_id = '{name}' AND due_at IS NOT NULL")  # noqa: S608 - the test's own names
    first = list(THREADS[:limit])
    assert [item.thread.id for item in await store.claim_notices(limit=limit)] == first
    assert [poll.id for poll in await store.claim_polls(limit=limit)] == first
    assert [item.thread.id for item in await store.claim_requests(limit=limit)] == first


BROKEN_KNOWN = ["{", "[]", "null", '{"round": "many"}', '{"problem": "bad mood"}', '{"job": {"id": 5}}', "\ufffd"]
BROKEN_MESSAGES = [
    '{"kind": "job_started", "job_id": 5}',
    "",
    "[1]",
    '{"a": {"b": 1}}',
    '{"kind": 5}',
    '{"kind": "shrug", "a": "\\ud800"}',
    '{"kind": "request_rejected", "reason": "shrug"}',
    "NaN",
]


async def make_unreleased(sql: Sql, message: dict[str, object], delivery: Delivery) -> None:
    """The first notice is of a kind of a newer version, which has left it for long enough."""
    await sql(
        "UPDATE notices SET message = :message, delivery = :delivery, created_at = created_at - :patience"
        " WHERE key = 't1/a'",
        message=json.dumps(message),
        delivery=delivery,
        patience=PATIENCE,
    )


@pytest.mark.parametrize("delivery", [Delivery.CARD, Delivery.REACTION])
async def test_an_unreadable_card_or_reaction_blocks_nothing(store: StoreWorld, sql: Sql, delivery: Delivery) -> None:
    await store.add(a_thread("t1"), say=[a_post("a"), a_post("b")])
    await make_unreleased(sql, {"kind": "shrug"}, delivery)
    claimed = [*await store.claim_notices(), *await store.claim_notices()]
    assert [item.notice.key for item in claimed] == ["t1/b"]


@pytest.mark.first(message=3)
@pytest.mark.parametrize("message", BROKEN_MESSAGES)
async def test_malformed_messages_are_set_aside(
    store: StoreWorld, sql: Sql, caplog: pytest.LogCaptureFixture, message: str
) -> None:
    await store.add(a_thread("t1"), say=[a_post("a", repository="secret words"), a_post("b")])
    await store.add(a_thread("t2"), say=[CARD])
    await sql("UPDATE notices SET message = :message WHERE key = 't1/a'", message=message)
    assert [[item.notice.key for item in await store.claim_notices()] for _ in "12"] == [["t2/card"], ["t1/b"]]
    [(state, problem)] = await sql("SELECT state, problem FROM notices WHERE key = 't1/a'")
    assert (state, "cannot be read" in problem) == ("given_up", True)
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1


@pytest.mark.first(state=3)
@pytest.mark.parametrize("state", BROKEN_KNOWN)
async def test_an_unreadable_thread_does_not_block_others(store: StoreWorld, sql: Sql, state: str) -> None:
    for name in ("t1", "t2"):
        await store.watched(name)
        await store.add(a_follow_up("1", name))
        await store.transact(lambda tx, name=name: tx.notices.add(name, a_post("a")))  # type: ignore[misc]
    await sql("UPDATE threads SET state = :state WHERE id = 't1'", state=state)
    assert [thread.id for thread in await store.claim_polls()] == ["t2"]
    assert [item.thread.id for item in await store.claim_requests()] == ["t2"]
    assert await sql("SELECT due_at, claimed_by FROM polls WHERE thread_id = 't1'") == [(None, None)]
    assert await sql("SELECT state, due_at FROM requests WHERE thread_id = 't1'") == [("rejected", None)]


async def test_in_an_unreadable_thread_posts_go_out_and_the_card_is_left_alone(store: StoreWorld, sql: Sql) -> None:
    await store.watched("t1")
    await store.add(a_follow_up("1", "t1"))
    await store.transact(lambda tx: tx.notices.add("t1", a_post("a")))
    await store.transact(lambda tx: tx.notices.add("t1", CARD))
    await sql("UPDATE threads SET state = '{' WHERE id = 't1'")
    await store.claim_polls()
    await store.claim_requests()
    said = [*await store.deliver_all(), *await store.deliver_all()]  # the card is set aside in between
    assert [key.rpartition("/")[2] for key in said] == ["a", "damaged", "unreadable"]
    [(state, problem)] = await sql("SELECT state, problem FROM notices WHERE delivery = 'card'")
    assert state == "given_up"
    assert "cannot be read" in problem


async def test_errors_about_an_unreadable_thread_quote_nothing(store: StoreWorld, sql: Sql) -> None:
    await store.add(a_thread(), a_start())
    await sql("""UPDATE threads SET state = '{"round": "secret words"}'""")
    with pytest.raises(StoreError, match="thread t1 cannot be read") as caught:
        await store.transact(lambda tx: tx.threads.get("t1"))
    assert "secret words" not in str(caught.value)


@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
async def test_the_author_of_an_unreadable_request_is_told(store: StoreWorld, sql: Sql) -> None:
    await store.add(a_thread(ts="1.1"), a_start())
    await sql("UPDATE requests SET text = x'ff'")
    assert await store.claim_requests() == []
    [claimed] = await store.claim_notices()
    message = RequestRejected(RequestSummary("t1-start", "UANA", None), RejectionReason.UNREADABLE)
    assert claimed.notice.message == message


@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
async def test_the_author_of_an_unreadable_follow_up_of_a_start_that_ended_is_told(store: StoreWorld, sql: Sql) -> None:
    damaged, whole = a_follow_up("1"), a_follow_up("2")
    await store.add(a_thread(ts="1.1"), a_start(), damaged, whole)
    await sql("UPDATE requests SET text = x'ff' WHERE id = :id", id=damaged.id)
    assert await store.transact(lambda tx: tx.requests.waiting_follow_ups("t1")) == [whole]
    [claimed] = await store.claim_notices()
    message = RequestRejected(RequestSummary(damaged.id, damaged.person_id, None), RejectionReason.UNREADABLE)
    assert claimed.notice.message == message
