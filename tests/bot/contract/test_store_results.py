"""Results count only while their owner holds the claim, and only for what was claimed."""

from dataclasses import replace

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    CARD,
    LEASE,
    Sql,
    a_post,
    a_reaction,
    a_thread,
    add,
    changed,
    claim_notices,
    claim_polls,
    deliver_all,
    done,
    get_thread,
    save,
    save_polls,
    say,
    unchanged,
    watched,
)

from bot.domain.deliver import ReactionProgress
from bot.notices.notice import NewNotice, Reaction, ReactionChanged
from bot.store.notice_queue import ClaimedNotice
from bot.store.store import Store

pytestmark = pytest.mark.either_database

LASTING = [CARD, a_reaction("m", "eyes")]


async def test_a_notice_is_given_up_and_the_next_one_proceeds(store: Store, sql: Sql) -> None:
    await add(store, a_thread(), say=[a_post("a"), a_post("b")])
    [claimed] = await claim_notices(store)
    assert not await store.transact(lambda tx: tx.notices.give_up(claimed.notice, "two", problem="is_archived"))
    assert await store.transact(lambda tx: tx.notices.give_up(claimed.notice, "one", problem="is_archived"))
    assert await sql("SELECT state, problem FROM notices ORDER BY id LIMIT 1") == [("given_up", "is_archived")]
    assert await deliver_all(store) == ["t1/b"]


@pytest.mark.parametrize("notice", LASTING, ids=["card", "mark"])
async def test_a_newer_revision_stays_open_when_an_older_is_delivered(store: Store, notice: NewNotice) -> None:
    await add(store, a_thread(), say=[notice])
    [older] = await claim_notices(store)
    await say(store, notice)
    assert not await claim_notices(store)
    assert await done(store, older)
    [newer] = await claim_notices(store)
    assert (newer.notice.revision, newer.notice.id) == (older.notice.revision + 1, older.notice.id)
    assert await done(store, newer)
    assert not await claim_notices(store)


@pytest.mark.parametrize("notice", LASTING, ids=["card", "mark"])
async def test_a_newer_revision_is_tried_when_an_older_is_given_up(store: Store, notice: NewNotice) -> None:
    await add(store, a_thread(), say=[notice])
    [older] = await claim_notices(store)
    await say(store, notice)
    assert await store.transact(lambda tx: tx.notices.give_up(older.notice, "one", problem="msg_too_long"))
    [newer] = await claim_notices(store)
    assert (newer.notice.revision, newer.notice.attempts) == (1, 1)


@pytest.mark.parametrize("notice", LASTING, ids=["card", "mark"])
async def test_a_lasting_notice_reopens_after_any_outcome(store: Store, notice: NewNotice) -> None:
    await add(store, a_thread(), say=[notice])
    [claimed] = await claim_notices(store)
    await store.transact(lambda tx: tx.notices.give_up(claimed.notice, "one", problem="is_archived"))
    await say(store, notice)
    [claimed] = await claim_notices(store)
    await store.transact(lambda tx: tx.notices.postpone(claimed.notice, "one", due_in=60.0, without_blocks=True))
    await say(store, notice)
    [claimed] = await claim_notices(store)
    assert (claimed.notice.revision, claimed.notice.attempts, claimed.notice.without_blocks) == (2, 1, False)


async def test_a_card_in_doubt_stays_uncertain_until_its_ts_is_known(store: Store, clock: FakeClock) -> None:
    await add(store, a_thread(), say=[CARD])
    [claimed] = await claim_notices(store)
    await store.transact(lambda tx: tx.notices.postpone(claimed.notice, "one", due_in=0.0, uncertain=True))
    await say(store, CARD)
    [claimed] = await claim_notices(store)
    assert claimed.notice.uncertain
    await store.transact(lambda tx: tx.threads.set_card("t1", "17.1"))
    await say(store, CARD)
    await done(store, claimed, ts="17.1")
    [claimed] = await claim_notices(store)
    assert not claimed.notice.uncertain
    clock.advance(LEASE)
    await claim_notices(store, "two")
    await say(store, CARD)
    clock.advance(LEASE)
    assert len(await claim_notices(store)) == 1


@pytest.mark.parametrize("change", [unchanged, changed])
async def test_a_poll_older_than_the_saved_state_is_dropped_and_repeated(store: Store, change: type) -> None:
    await watched(store)
    [claimed] = await claim_polls(store)
    await save(store, "t1", replace(claimed.thread.state, round=7), poll_in=30.0)
    assert await save_polls(store, change(claimed)) == 0
    assert (await get_thread(store)).state.round == 7
    assert not await claim_notices(store)
    assert not await claim_polls(store)  # due at the time set by save_known, not by the dropped poll


async def test_a_job_is_not_polled_again_while_a_poll_is_in_flight(store: Store) -> None:
    await watched(store)
    [claimed] = await claim_polls(store)
    await save(store, "t1", replace(claimed.thread.state, round=1), poll_in=0.0)
    assert not await claim_polls(store, "two")
    assert await save_polls(store, unchanged(claimed)) == 0
    assert len(await claim_polls(store, "two")) == 1


@pytest.mark.parametrize("change", [unchanged, changed])
async def test_a_poll_whose_claim_was_taken_over_is_dropped(store: Store, clock: FakeClock, change: type) -> None:
    await watched(store)
    [late] = await claim_polls(store, "paused")
    clock.advance(LEASE)
    [claimed] = await claim_polls(store, "alive")
    assert await save_polls(store, change(late), owner="paused") == 0
    assert not await claim_polls(store, "third")
    assert await save_polls(store, change(claimed), owner="alive") == 1


async def test_a_dropped_poll_releases_a_watch_that_is_still_held(store: Store) -> None:
    await watched(store)
    [claimed] = await claim_polls(store)
    stale = replace(claimed, thread=replace(claimed.thread, revision=0))
    assert await save_polls(store, changed(stale)) == 0
    assert len(await claim_polls(store, "two")) == 1


async def test_polls_are_saved_in_batches_independently(store: Store) -> None:
    for n in range(6):
        await watched(store, f"t{n}")
    claimed = {item.thread.id: item for item in await claim_polls(store)}
    await save(store, "t4", replace(claimed["t4"].thread.state, round=1), poll_in=0.0)
    polls = [
        unchanged(claimed["t5"]),
        changed(claimed["t4"], a_post("a")),
        changed(claimed["t3"], a_post("a"), not_found_count=3),
        unchanged(claimed["t2"], next_poll_in=0.0),
        changed(claimed["t1"], a_post("a"), not_found_count=1),
    ]
    assert await save_polls(store, *polls) == 4
    assert {item.thread.id for item in await claim_polls(store, "two")} == {"t2", "t4"}
    assert sorted(await deliver_all(store)) == ["t1/a", "t1/card", "t3/a", "t3/card"]
    assert (await get_thread(store, "t3")).state.failure.not_found_count == 3


async def test_a_watch_can_end_while_its_job_is_polled(store: Store) -> None:
    await watched(store, "t1")
    [claimed] = await claim_polls(store)
    await store.transact(lambda tx: tx.threads.save_state("t1", claimed.thread.state, poll_in=None))
    assert await claim_polls(store, "another") == []


async def reacted(store: Store, item: ClaimedNotice, *shown: Reaction, done: bool) -> bool:
    return await store.transact(lambda tx: tx.notices.reacted(item.notice, "one", ReactionProgress(shown, done)))


async def test_a_partial_mark_is_known_to_the_next_attempt(store: Store) -> None:
    await add(store, a_thread(), say=[a_reaction("m", "eyes")])
    [first] = await claim_notices(store)
    assert (first.notice.reactions_shown, first.notice.reaction_added) == ((), False)
    assert await reacted(store, first, Reaction.RECORDED, done=True)
    assert not await claim_notices(store)
    await say(store, a_reaction("m", "white_check_mark"))
    [second] = await claim_notices(store)
    assert (second.notice.reactions_shown, second.notice.reaction_added) == ((Reaction.RECORDED,), False)
    assert await reacted(store, second, Reaction.RECORDED, Reaction.ACCEPTED, done=False)
    [third] = await claim_notices(store)
    assert third.notice.reactions_shown == (Reaction.RECORDED, Reaction.ACCEPTED)
    assert (third.notice.reaction_added, third.notice.attempts) == (True, 1)
    await store.transact(lambda tx: tx.notices.postpone(third.notice, "one", due_in=0.0))
    [again] = await claim_notices(store)
    assert (again.notice.reactions_shown, again.notice.reaction_added) == (third.notice.reactions_shown, True)


async def test_a_mark_replaced_in_flight_is_reported_by_its_poster(store: Store) -> None:
    await add(store, a_thread(), say=[a_reaction("m", "eyes")])
    [first] = await claim_notices(store)
    await say(store, a_reaction("m", "white_check_mark"))
    assert await reacted(store, first, Reaction.RECORDED, done=True)
    [second] = await claim_notices(store)
    assert (second.notice.reactions_shown, second.notice.reaction_added) == ((Reaction.RECORDED,), False)


async def test_a_mark_in_doubt_stays_so_over_a_failure(store: Store, clock: FakeClock) -> None:
    """The first attempt may have added the mark that was replaced during the second."""
    await add(store, a_thread(), say=[a_reaction("m", "eyes")])
    await claim_notices(store, "dead")
    clock.advance(LEASE)
    [second] = await claim_notices(store)
    await say(store, a_reaction("m", "white_check_mark"))
    await store.transact(lambda tx: tx.notices.postpone(second.notice, "one", due_in=0.0))
    [third] = await claim_notices(store)
    assert third.notice.reactions_shown is None


async def test_a_postponed_notice_is_due_at_once_when_something_newer_is(store: Store, clock: FakeClock) -> None:
    await add(store, a_thread(), say=[replace(a_reaction("m", "eyes"), due_in=5.0)])
    assert not await claim_notices(store)
    await say(store, a_reaction("m", "white_check_mark"))
    [claimed] = await claim_notices(store)
    assert claimed.notice.message == ReactionChanged("m", Reaction.ACCEPTED)
