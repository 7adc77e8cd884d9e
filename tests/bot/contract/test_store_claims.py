"""Claims: due work is claimed once, in order, and again if its owner is gone."""

from typing import Any

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    CARD,
    JOB,
    LEASE,
    a_follow_up,
    a_post,
    a_reaction,
    a_start,
    a_thread,
    add,
    an_answer,
    claim_notices,
    claim_polls,
    claim_requests,
    deliver_all,
    done,
    get_request,
    get_thread,
    save,
    save_polls,
    say,
    settle,
    watched,
)

from bot.domain.requests.request import RequestState
from bot.domain.threads.thread import FollowUpCounts, ThreadState
from bot.notices.notice import Reaction, ReactionChanged
from bot.store.store import Store
from bot.store.threads import ClaimedPoll, KnownPoll, UnchangedPoll


async def test_a_start_waits_for_its_card(store: Store) -> None:
    await add(store, a_thread(), a_start())
    assert not await claim_requests(store)
    await store.transact(lambda tx: tx.threads.set_card("t1", "1.1"))
    [claimed] = await claim_requests(store)
    assert claimed.request.id == "t1-start"
    assert claimed.thread == await get_thread(store)
    assert not claimed.uncertain


async def test_a_claimed_request_counts_its_attempt(store: Store, clock: FakeClock) -> None:
    await add(store, a_thread(ts="1.1"), a_start())
    first = clock.now()
    [claimed] = await claim_requests(store)
    assert claimed.request == await get_request(store, "t1-start")
    assert (claimed.request.state, claimed.request.attempts) == (RequestState.SENDING, 1)
    assert claimed.request.first_tried_at == first
    await settle(store, "t1-start", RequestState.WAITING, due_in=5.0, problem="busy")
    assert not await claim_requests(store)
    clock.advance(5.0)
    [claimed] = await claim_requests(store)
    assert (claimed.request.attempts, claimed.request.first_tried_at, claimed.uncertain) == (2, first, False)


async def test_a_follow_up_waits_for_the_start_and_the_job_id(store: Store) -> None:
    await add(store, a_thread(ts="1.1"), a_follow_up("1"), a_start())
    [start] = await claim_requests(store)
    assert start.request.id == "t1-start"
    assert not await claim_requests(store)
    await settle(store, "t1-start", RequestState.ACCEPTED)
    assert not await claim_requests(store)
    await save(store, "t1", ThreadState(job=JOB), poll_in=0.0)
    assert [item.request.id for item in await claim_requests(store)] == ["t1-1"]


async def test_follow_ups_are_sent_one_by_one_as_written(store: Store) -> None:
    await watched(store)
    await add(store, *[a_follow_up(f"1700000000.00000{n}") for n in (3, 1, 2)])
    for n in (1, 2, 3):
        [claimed] = await claim_requests(store)
        assert claimed.request.text == f"1700000000.00000{n}"
        assert not await claim_requests(store)
        await settle(store, claimed.request.id, RequestState.ACCEPTED)


async def test_a_follow_up_in_backoff_delays_only_its_own_thread(store: Store) -> None:
    await watched(store, "t1")
    await watched(store, "t2")
    await add(store, a_follow_up("1"), a_follow_up("2"), a_follow_up("1", "t2"))
    claimed = await claim_requests(store)
    assert {item.request.id for item in claimed} == {"t1-1", "t2-1"}
    await settle(store, "t1-1", RequestState.WAITING, due_in=60.0)
    await settle(store, "t2-1", RequestState.ACCEPTED)
    assert not await claim_requests(store)


async def test_a_reopened_request_waits_for_the_one_in_flight(store: Store) -> None:
    await watched(store)
    await add(store, a_follow_up("1"), a_follow_up("2"))
    await claim_requests(store)
    await settle(store, "t1-1", RequestState.UNCERTAIN)
    assert [item.request.id for item in await claim_requests(store)] == ["t1-2"]
    await settle(store, "t1-1", RequestState.WAITING)
    assert not await claim_requests(store)
    await settle(store, "t1-2", RequestState.ACCEPTED)
    assert [item.request.id for item in await claim_requests(store)] == ["t1-1"]


async def test_a_request_with_an_expired_lease_is_uncertain(store: Store, clock: FakeClock) -> None:
    await add(store, a_thread(ts="1.1"), a_start())
    await claim_requests(store, "dead")
    clock.advance(LEASE - 1)
    assert not await claim_requests(store, "alive")
    assert await store.transact(lambda tx: tx.requests.is_claimed_by("t1-start", "dead"))
    clock.advance(1)
    [claimed] = await claim_requests(store, "alive")
    assert (claimed.uncertain, claimed.request.attempts) == (True, 2)
    assert not await store.transact(lambda tx: tx.requests.is_claimed_by("t1-start", "dead"))
    assert await store.transact(lambda tx: tx.requests.is_claimed_by("t1-start", "alive"))
    await settle(store, "t1-start", RequestState.ACCEPTED)
    assert not await store.transact(lambda tx: tx.requests.is_claimed_by("t1-start", "alive"))


async def test_two_expired_leases_in_a_thread_do_not_block_each_other(store: Store, clock: FakeClock) -> None:
    await watched(store)
    await add(store, a_follow_up("1"), a_follow_up("2"))
    await claim_requests(store)
    await settle(store, "t1-1", RequestState.UNCERTAIN)
    await claim_requests(store)
    await settle(store, "t1-1", RequestState.WAITING)
    clock.advance(LEASE)
    assert [item.request.id for item in await claim_requests(store)] == ["t1-1"]


async def test_a_request_becomes_due_at_its_time(store: Store, clock: FakeClock) -> None:
    await add(store, a_thread(ts="1.1"))
    assert await store.transact(lambda tx: tx.requests.add(a_start(), due_in=1.5))
    assert not await claim_requests(store)
    clock.advance(1.5)
    assert await claim_requests(store)


@pytest.mark.parametrize("limit", [1, 3])
async def test_claims_respect_their_limit_and_take_the_longest_due_first(
    store: Store, clock: FakeClock, limit: int
) -> None:
    for n in (1, 2, 3, 4):
        await watched(store, f"t{n}", poll_in=1.0)
        await say(store, a_post("p"), thread=f"t{n}")
        await add(store, a_follow_up("1", f"t{n}"))
        clock.advance(1.0)
    first = [f"t{n}" for n in range(1, limit + 1)]
    assert [item.thread.id for item in await claim_polls(store, limit=limit)] == first
    assert [item.thread.id for item in await claim_notices(store, limit=limit)] == first
    assert [item.thread.id for item in await claim_requests(store, limit=limit)] == first


async def test_a_watch_is_claimed_by_one_owner(store: Store, clock: FakeClock) -> None:
    thread = await watched(store)
    [claimed] = await claim_polls(store, "one")
    assert claimed.thread == thread
    assert not await claim_polls(store, "two")
    clock.advance(LEASE)
    assert len(await claim_polls(store, "two")) == 1


async def test_a_watch_of_a_known_thread_is_claimed_without_it(store: Store, clock: FakeClock) -> None:
    """At another revision it is claimed with its thread; it is held, saved and read like any other."""
    await watched(store, "t1")
    clock.advance(1.0)
    other = await watched(store, "t2")
    known = {("t1", 1), ("t2", 0)}
    claimed = await store.transact(lambda tx: tx.polls.claim("one", lease=LEASE, limit=10, known=known))
    first = KnownPoll("t1", 1, "docs", JOB.id)
    assert claimed == [first, ClaimedPoll(other)]
    assert not await claim_polls(store, "two")
    assert await store.transact(lambda tx: tx.polls.thread(first)) == await get_thread(store, "t1")
    assert await save_polls(store, UnchangedPoll("t1", 1, 5.0)) == 1
    clock.advance(5.0)
    assert [poll.thread.id for poll in await claim_polls(store, "two")] == ["t1"]


async def test_a_claim_reads_a_bounded_number_of_unknown_threads(store: Store, clock: FakeClock) -> None:
    """The others stay unclaimed, and known ones are claimed as well."""
    for n in (1, 2, 3, 4):
        await watched(store, f"t{n}")
        clock.advance(1.0)
    terms: Any = {"lease": LEASE, "limit": 9, "known": {("t1", 1), ("t4", 1)}, "most_read": 1}
    claimed = await store.transact(lambda tx: tx.polls.claim("one", **terms))
    assert [type(poll) for poll in claimed] == [KnownPoll, ClaimedPoll, KnownPoll]
    assert [poll.thread.id for poll in await claim_polls(store, "two")] == ["t3"]


async def test_a_known_thread_that_changed_is_not_claimed(store: Store) -> None:
    """The poll's result precedes the change: it is dropped, and the watch is released."""
    await watched(store)
    known = KnownPoll("t1", 1, "docs", JOB.id)
    claimed = await store.transact(lambda tx: tx.polls.claim("one", lease=LEASE, limit=10, known={("t1", 1)}))
    assert claimed == [known]
    await save(store, "t1", ThreadState(job=JOB, round=1), poll_in=0.0)
    assert await store.transact(lambda tx: tx.polls.thread(known)) is None
    assert await save_polls(store, UnchangedPoll("t1", 1, 5.0)) == 0
    assert [poll.thread.revision for poll in await claim_polls(store, "two")] == [2]


async def test_notices_of_a_thread_are_delivered_in_order_one_at_a_time(store: Store) -> None:
    await add(store, a_thread(), say=[CARD, a_post("a"), a_post("b")])
    for key in ("t1/card", "t1/a", "t1/b"):
        [claimed] = await claim_notices(store)
        assert claimed.notice.key == key
        assert not await claim_notices(store, "two")
        assert await done(store, claimed)


async def test_a_post_in_an_existing_thread_waits_for_its_card(store: Store) -> None:
    """Whatever was recorded before the card, the card is posted first."""
    await add(store, a_thread(ts="1.1", card_ts=None), say=[a_post("a")])
    assert not await claim_notices(store)
    await say(store, CARD)
    [card] = await claim_notices(store)
    assert card.notice.key == "t1/card"
    assert not await claim_notices(store, "two")
    await store.transact(lambda tx: tx.threads.set_card("t1", "1.2"))
    assert await done(store, card, ts="1.2")
    [post] = await claim_notices(store)
    assert (post.notice.key, post.thread.ts, post.thread.card_ts) == ("t1/a", "1.1", "1.2")


async def test_private_notices_do_not_wait_for_posts_that_wait_for_the_card(store: Store) -> None:
    """The card may have to wait for the person's answer."""
    await add(
        store, a_thread(ts="1.1", card_ts=None), say=[a_post("a"), an_answer("b", "UANA"), an_answer("c", "UBEN")]
    )
    for key in ("t1/b", "t1/c"):
        [told] = await claim_notices(store)
        assert told.notice.key == key
        assert not await claim_notices(store, "two")
        assert await done(store, told, ts=None)
    assert not await claim_notices(store)


async def test_a_thread_that_will_have_no_card_blocks_no_post(store: Store) -> None:
    """The sender finds out, and the notice goes privately to one person."""
    await add(store, a_thread(ts="1.1", card_ts=None), say=[a_post("a")])
    await store.transact(lambda tx: tx.threads.detach("t1"))
    [post] = await claim_notices(store)
    assert (post.notice.key, post.thread.ts) == ("t1/a", None)


async def test_a_card_is_claimed_with_its_follow_up_counts(store: Store) -> None:
    """Accepted and waiting ones; no others."""
    others = [a_follow_up("9", state=RequestState.RECEIVED), a_follow_up("8", state=RequestState.WITHDRAWN)]
    await add(store, a_thread(ts="1.1"), a_start(), *(a_follow_up(f"{number}") for number in range(5)), *others)
    await add(store, a_thread("t2", ts="2.1"), a_follow_up("1", "t2"))
    for number, state in enumerate((RequestState.ACCEPTED, RequestState.ACCEPTED, RequestState.REJECTED)):
        await settle(store, f"t1-{number}", state)
    await say(store, CARD, a_post("a"), an_answer("b", "UANA"))
    counts: dict[str, FollowUpCounts] = {}
    while claimed := await claim_notices(store):
        counts |= {item.notice.key: item.follow_ups for item in claimed}
        for item in claimed:
            assert await done(store, item)
    assert counts == {"t1/card": FollowUpCounts(2, 3), "t1/a": FollowUpCounts(), "t1/b": FollowUpCounts(2, 3)}


async def test_marks_neither_wait_nor_block(store: Store, clock: FakeClock) -> None:
    await add(store, a_thread(), say=[a_reaction("m1", "eyes"), CARD, a_reaction("m2", "eyes"), a_post("a")])
    first = await claim_notices(store)
    assert sorted(item.notice.key for item in first) == ["t1/card", "t1/m1", "t1/m2"]
    assert not await claim_notices(store, "two")
    for item in first:
        if item.notice.key == "t1/card":
            assert await done(store, item)
        else:
            await store.transact(lambda tx, item=item: tx.notices.postpone(item.notice, "one", due_in=5.0))  # type: ignore[misc]  # bound here, for this turn
    [post] = await claim_notices(store)
    assert post.notice.key == "t1/a"
    clock.advance(5.0)
    assert sorted(item.notice.key for item in await claim_notices(store, "two")) == ["t1/m1", "t1/m2"]


async def test_many_marks_leave_room_for_posts(store: Store, clock: FakeClock) -> None:
    await add(store, a_thread(), say=[a_reaction(f"m{n}", "eyes") for n in range(5)])
    clock.advance(1.0)
    await say(store, a_post("a"))
    claimed = await claim_notices(store, limit=4, max_reactions=2)
    post, *marks = [item.notice.key for item in claimed]
    assert (post, len(marks)) == ("t1/a", 2)
    assert not await claim_notices(store, max_reactions=0)
    later = [item.notice.key for item in await claim_notices(store, limit=2)]
    assert len({*marks, *later}) == 4  # they are due at the same time, in any order


async def test_a_mark_in_flight_is_claimed_by_one_owner(store: Store, clock: FakeClock) -> None:
    await add(store, a_thread(), say=[a_reaction("m", "eyes")])
    [reaction] = await claim_notices(store)
    await say(store, a_reaction("m", "white_check_mark"))
    assert not await claim_notices(store, "two")
    assert await done(store, reaction)
    [newer] = await claim_notices(store, "two")
    assert newer.notice.message == ReactionChanged("m", Reaction.ACCEPTED)


async def test_a_reopened_card_waits_for_the_post_in_flight(store: Store) -> None:
    await add(store, a_thread(), say=[CARD])
    await deliver_all(store)
    await say(store, a_post("a"))
    [post] = await claim_notices(store)
    await say(store, CARD)
    assert not await claim_notices(store, "two")
    await done(store, post)
    assert await deliver_all(store) == ["t1/card"]


async def test_a_notice_with_an_expired_lease_is_uncertain_until_delivered(store: Store, clock: FakeClock) -> None:
    await add(store, a_thread(), say=[a_post("a")])
    [first] = await claim_notices(store, "dead")
    assert not first.notice.uncertain
    clock.advance(LEASE)
    [second] = await claim_notices(store, "alive")
    assert (second.notice.uncertain, second.notice.attempts) == (True, 2)
    assert not await done(store, first, "dead")
    await store.transact(lambda tx: tx.notices.postpone(second.notice, "alive", due_in=0.0))
    [third] = await claim_notices(store, "alive")
    assert third.notice.uncertain
    assert await done(store, third, "alive")
    assert not await claim_notices(store)


async def test_released_work_is_due_at_once(store: Store) -> None:
    await watched(store)
    await add(store, a_follow_up("1"))
    await say(store, a_post("a"))
    for claim in (claim_polls, claim_requests, claim_notices):
        assert await claim(store, "leaving")
        assert not await claim(store, "staying")
    await store.transact(lambda tx: tx.claims.release("leaving"))
    [request] = await claim_requests(store, "staying")
    [notice] = await claim_notices(store, "staying")
    assert (request.uncertain, notice.notice.uncertain) == (True, True)
    assert await claim_polls(store, "staying")


async def test_a_release_affects_only_its_owner(store: Store) -> None:
    await watched(store)
    await claim_polls(store, "one")
    await store.transact(lambda tx: tx.claims.release("two"))
    assert not await claim_polls(store, "two")
