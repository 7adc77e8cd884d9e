"""Claims: due work is claimed once, in order and within its limits, and again if its owner is gone."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from sqlalchemy import insert
from support.fakes.ports import FakeClock
from support.worlds.core_world import ANA, CoreWorld
from support.worlds.store_world import (
    CARD,
    JOB,
    LEASE,
    Opener,
    Sql,
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
    refuse,
    save,
    save_polls,
    say,
    settle,
    use_budget,
    watched,
)

from bot.domain.permissions import PermissionRules
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import RequestState, WayIn
from bot.domain.slack_limits import SLACK_LIMITS, Limit, SlackLimits, SlackMethod
from bot.domain.threads.thread import FollowUpCounts, ThreadState
from bot.notices.notice import CARD_PROGRESSED, Reaction, ReactionChanged
from bot.store.database.engine import engine_for
from bot.store.request_queue import ClaimedRequest
from bot.store.retention import OldRows
from bot.store.schema.rows import request_values
from bot.store.schema.tables import requests
from bot.store.store import Store, Transaction, open_store
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


async def claim_all(store: Store, owner: str) -> int:
    claims = [await claim_requests(store, owner), await claim_notices(store, owner), await claim_polls(store, owner)]
    return sum(map(len, claims))


async def test_released_work_is_due_at_once(store: Store) -> None:
    await watched(store)
    await add(store, a_follow_up("1"))
    await say(store, a_post("a"))
    for claim in (claim_polls, claim_requests, claim_notices):
        assert await claim(store, "leaving")
    for gone in ("another", "leaving"):
        assert await claim_all(store, "staying") == 0
        await store.transact(lambda tx, gone=gone: tx.claims.release(gone))  # type: ignore[misc]
    [request] = await claim_requests(store, "staying")
    [notice] = await claim_notices(store, "staying")
    assert (request.uncertain, notice.notice.uncertain) == (True, True)
    assert await claim_polls(store, "staying")


FLOOD = 5_000
_RANDOM = Random(26)  # noqa: S311 - the same turns in each run, guards nothing
TURN = [_RANDOM.random() for _ in range(40)]
FEW = [*TURN[:2], *(pytest.param(turn, marks=pytest.mark.full) for turn in TURN[2:5])]


async def flood(database: str, *, person: str, threads: Sequence[str], state: RequestState) -> None:
    """This many overdue replies of a person."""
    rows = [
        request_values(a_follow_up(f"1700000000.{n:06}", threads[n % len(threads)], person_id=person, state=state))
        | {"due_at": 1_600_000_000.0 + n}
        for n in range(FLOOD)
    ]
    engine = engine_for(database)
    async with engine.begin() as connection:
        await connection.execute(insert(requests), rows)
    await engine.dispose()


async def claim_received(store: Store, limit: int = 8, turn: float = 0.0) -> Sequence[ClaimedRequest]:
    return await store.transact(lambda tx: tx.requests.claim_received("one", lease=LEASE, limit=limit, turn=turn))


async def claim_to_send(store: Store, limit: int, turn: float) -> Sequence[ClaimedRequest]:
    return await store.transact(lambda tx: tx.requests.claim("one", lease=LEASE, limit=limit, turn=turn))


def people(claimed: Sequence[ClaimedRequest]) -> Counter[str]:
    return Counter(item.request.person_id for item in claimed)


@pytest.mark.promise("floods")
@pytest.mark.parametrize("turn", FEW)
async def test_a_single_request_among_thousands_is_prepared_next(store: Store, database: str, turn: float) -> None:
    """Whoever it is by, and in any thread; the one with thousands gets the remaining slots."""
    for name in ("t1", "t2"):
        await watched(store, name)
    await flood(database, person="UMANY", threads=["t1"], state=RequestState.RECEIVED)
    received = RequestState.RECEIVED
    await add(store, a_follow_up("2.1", person_id="UANA", state=received))
    await add(store, a_follow_up("2.2", "t2", person_id="UZOE", state=received))
    await add(store, a_follow_up("2.3", "t2", person_id="UMANY", state=received))
    claimed = await claim_received(store, turn=turn)
    assert people(claimed) == {"UMANY": 6, "UANA": 1, "UZOE": 1}
    assert "t2-2.3" in {item.request.id for item in claimed}
    assert people(await claim_received(store, turn=turn)) == {"UMANY": 8}


@pytest.mark.full
@pytest.mark.promise("floods")
@pytest.mark.parametrize("turn", FEW)
async def test_a_single_request_among_thousands_is_sent_next(store: Store, database: str, turn: float) -> None:
    """The thousands are in one thread, where they go one by one, and in many."""
    names = [f"{n:03}" for n in range(50)]
    for name in (*names, "other"):
        await watched(store, name)
    await flood(database, person="UMANY", threads=names, state=RequestState.WAITING)
    await add(store, a_follow_up("2.1", "other", person_id="UANA"))
    claimed = await claim_to_send(store, limit=4, turn=turn)
    assert people(claimed) == {"UMANY": 3, "UANA": 1}
    assert len({item.thread.id for item in claimed}) == 4
    assert {item.request.written_at for item in claimed if item.request.person_id == "UMANY"} <= {
        f"1700000000.{n:06}" for n in range(50)
    }


@pytest.mark.full
@pytest.mark.promise("floods")
async def test_a_thread_with_thousands_of_requests_keeps_its_order(store: Store, database: str) -> None:
    """Also those of several people."""
    await watched(store)
    await flood(database, person="UMANY", threads=["t1"], state=RequestState.WAITING)
    await add(store, a_follow_up("1700000000.0000005", person_id="UANA"))
    order = []
    for turn in TURN[:4]:
        [claimed] = await claim_to_send(store, limit=4, turn=turn)
        order.append(claimed.request.written_at)
        await settle(store, claimed.request.id, RequestState.ACCEPTED)
    assert order == ["1700000000.000000", "1700000000.0000005", "1700000000.000001", "1700000000.000002"]


async def test_only_expired_claims_of_others_are_taken_over(database: str, clock: FakeClock) -> None:
    takeovers: list[int] = []
    store = await open_store(database, clock=clock, committed=lambda _, count: takeovers.append(count))
    await add(store, a_thread(ts="1.1"), a_start(), say=[a_post("p")])
    await watched(store, "t2")
    first = await claim_all(store, "one")
    assert first >= 3
    assert await claim_all(store, "two") == sum(takeovers) == 0
    clock.advance(LEASE + 1.0)
    assert await claim_all(store, "two") == sum(takeovers) == first
    await store.close()


HOUR = 3600.0


async def ask(store: Store, request_id: str, *, person: str = "UANA", limit: int = 2) -> float | None:
    """Counts a request if its person may make it; otherwise returns when they may."""

    async def work(tx: Transaction) -> float | None:
        free_at = await tx.limits.free_at(person, request_id, limit=limit, within=HOUR)
        if free_at is None:
            await tx.limits.count(person, request_id)
        return free_at

    return await store.transact(work)


@pytest.mark.promise("hourly limit")
async def test_the_hourly_limit_frees_up_when_the_oldest_is_an_hour_old(store: Store, clock: FakeClock) -> None:
    """At exactly the announced time."""
    begin = clock.now()
    assert await ask(store, "r1") is None
    clock.advance(60)
    assert await ask(store, "r2") is None
    assert await ask(store, "r3") == begin + HOUR
    assert await ask(store, "r3", person="UBEN") is None
    clock.advance(HOUR - 61)
    assert await ask(store, "r4") == begin + HOUR
    clock.advance(1)
    assert await ask(store, "r4") is None
    assert await ask(store, "r5") == begin + 60 + HOUR


@pytest.mark.promise("hourly limit")
async def test_a_counted_request_is_neither_recounted_nor_refused(store: Store, clock: FakeClock) -> None:
    """It is checked again after its project was chosen, or after an edit."""
    for _ in range(3):
        assert await ask(store, "r1", limit=1) is None
        clock.advance(10)
    assert await ask(store, "r2", limit=1) == clock.now() - 30 + HOUR


@pytest.mark.promise("hourly limit")
async def test_a_lowered_limit_counts_earlier_requests(store: Store, clock: FakeClock) -> None:
    """Enough of them must be an hour old to leave fewer than the new limit."""
    begin = clock.now()
    for number in range(5):
        assert await ask(store, f"r{number}", limit=0) is None
        clock.advance(1)
    assert await ask(store, "r5", limit=2) == begin + 3 + HOUR


@pytest.mark.promise("hourly limit")
async def test_withdrawn_requests_do_not_count(store: Store) -> None:
    """Neither do requests that are only checked."""

    async def fails(tx: Transaction) -> None:
        assert await tx.limits.free_at("UANA", "r1", limit=1, within=HOUR) is None
        await tx.limits.count("UANA", "r1")
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            await store.transact(fails)
    assert await ask(store, "r2", limit=1) is None


@pytest.fixture
async def stores(another_store: Opener) -> Sequence[Store]:
    """As several processes would have them."""
    return [await another_store() for _ in range(3)]


@pytest.mark.promise("hourly limit")
async def test_the_limit_holds_under_concurrency(stores: Sequence[Store]) -> None:
    """Two people in three processes each get exactly the limit."""
    asked = [
        (person, ask(stores[number % 3], f"{person}{number}", person=person, limit=5))
        for number in range(24)
        for person in ("UANA", "UBEN")
    ]
    free_at = await asyncio.gather(*(each for _, each in asked))
    let_through = [person for (person, _), each in zip(asked, free_at, strict=True) if each is None]
    assert sorted(let_through) == ["UANA"] * 5 + ["UBEN"] * 5


@pytest.mark.promise("hourly limit")
async def test_the_hourly_limit_holds_for_requests_prepared_concurrently(
    stores: Sequence[Store], sql: Sql, clock: FakeClock
) -> None:
    """In two processes, before either has committed."""
    worlds = [CoreWorld(owner).on(each, clock) for owner, each in zip(("one", "two"), stores, strict=False)]
    for world in worlds:
        world.rules = PermissionRules("T1", hourly_limit=2)
        world.assemble()
    for number in range(12):
        await worlds[0].service.start(NewJob(ANA, "C1", f"job {number}", f"k{number}", WayIn.COMMAND))
    claimed = [(world, await world.request_preparer.claim(6)) for world in worlds]
    assert [len(items) for _, items in claimed] == [6, 6]
    await asyncio.gather(
        *(world.request_preparer.process(item, clock.monotonic()) for world, items in claimed for item in items)
    )
    found = await sql("SELECT state, count(*) FROM requests GROUP BY state ORDER BY state")
    assert found == [("rejected", 10), ("waiting", 2)]


FEW_CALLS = SlackLimits(
    dict.fromkeys(SLACK_LIMITS.methods, Limit(3, 3.0)), dict.fromkeys(SLACK_LIMITS.channel, Limit(1, 1.0))
)
"""Three calls of each method in any three seconds, and one a second in a channel."""


async def marks(store: Store, count: int) -> None:
    """This many due reactions."""
    await add(store, a_thread(), say=[a_reaction(f"m{number}", "eyes") for number in range(count)])


async def test_claims_stay_within_the_call_budget(store: Store, clock: FakeClock) -> None:
    await marks(store, 9)
    assert len(await claim_notices(store, limit=1, limits=FEW_CALLS)) == 1
    clock.advance(2.0)
    assert len(await claim_notices(store, "two", limits=FEW_CALLS)) == 2
    assert not await claim_notices(store, limits=FEW_CALLS)
    clock.advance(1.0)
    assert len(await claim_notices(store, limits=FEW_CALLS)) == 1
    clock.advance(2.0)
    assert len(await claim_notices(store, "two", limits=FEW_CALLS)) == 2


async def test_a_reaction_that_is_late_yields_to_one_in_time(store: Store, clock: FakeClock) -> None:
    await marks(store, 1)
    clock.advance(30.0)
    await add(store, a_thread("in time"), say=[a_reaction("in time", "eyes")])
    claimed = [await claim_notices(store, limit=1, limits=FEW_CALLS) for _ in range(2)]
    assert [item.thread.id for [item] in claimed] == ["in time", "t1"]


async def test_waiting_for_the_call_budget_is_not_an_attempt(store: Store, clock: FakeClock) -> None:
    await marks(store, 4)
    await claim_notices(store, limits=FEW_CALLS)
    for _ in range(9):
        assert not await claim_notices(store, limits=FEW_CALLS)
    clock.advance(3.0)
    [last] = await claim_notices(store, limits=FEW_CALLS)
    assert last.notice.attempts == 1


async def test_concurrent_claims_share_the_budget(another_store: Opener) -> None:
    stores = [await another_store() for _ in range(3)]
    await marks(stores[0], 30)
    claimed = await asyncio.gather(
        *(claim_notices(store, f"owner {turn}", limits=FEW_CALLS) for turn in range(4) for store in stores)
    )
    assert sum(map(len, claimed)) == 3
    takes = (
        use_budget(store, "users.info", lambda budget: budget.take("users.info", 2), FEW_CALLS) for store in stores
    )
    assert sorted([grant.calls for grant in await asyncio.gather(*takes)]) == [0, 1, 2]


async def test_a_429_of_a_post_holds_its_channel(store: Store, clock: FakeClock) -> None:
    for name in ("1", "2", "3"):
        await add(store, a_thread(f"t{name}", channel_id=f"C{name}"), say=[CARD])
    await refuse(store, SlackMethod.POST_MESSAGE, "C1", 20.0)
    assert sorted(item.thread.channel_id for item in await claim_notices(store)) == ["C2", "C3"]
    clock.advance(19.0)
    assert not await claim_notices(store, limits=FEW_CALLS)
    clock.advance(2.0)
    assert len(await claim_notices(store, limits=FEW_CALLS)) == 1


async def test_a_channel_that_an_older_version_holds_is_held(store: Store, clock: FakeClock, sql: Sql) -> None:
    await add(store, a_thread("t1", channel_id="C1"), say=[CARD])
    held = "INSERT INTO slack_calls (method, channel_id, tat) VALUES ('chat.postMessage', 'C1', :until)"
    await sql(held, until=clock.now() + 20.0)
    assert not await claim_notices(store)
    clock.advance(20.0)
    assert len(await claim_notices(store)) == 1


async def test_a_429_of_a_mark_holds_only_that_kind_in_all_channels(store: Store) -> None:
    await add(store, a_thread("t1", channel_id="C1"), say=[CARD, a_reaction("m", "eyes")])
    await add(store, a_thread("t2", channel_id="C2"), say=[CARD, a_reaction("m", "eyes")])
    await refuse(store, SlackMethod.ADD_REACTION, "C1")
    assert sorted(item.notice.key for item in await claim_notices(store)) == ["t1/card", "t2/card"]


async def test_new_cards_come_before_posts_and_posts_before_changed_cards_and_marks(store: Store) -> None:
    await add(store, a_thread("t1", ts="1.1", card_ts="1.1"), say=[CARD_PROGRESSED, a_reaction("m", "eyes")])
    await add(store, a_thread("t2", channel_id="C2", ts="2.1", card_ts="2.1"), say=[CARD])
    await add(store, a_thread("t3", channel_id="C3"), say=[CARD])
    await add(store, a_thread("t4", channel_id="C4", ts="4.1", card_ts="4.1"), say=[a_post("a")])
    await add(store, a_thread("t5", channel_id="C5", ts="5.1", card_ts="5.1"), say=[an_answer("b", "UANA")])
    keys = [[item.notice.key for item in await claim_notices(store, limit=1)] for _ in range(6)]
    assert keys == [["t5/b"], ["t3/card"], ["t4/a"], ["t2/card"], ["t1/card"], ["t1/m"]]


async def test_posts_do_not_wait_for_card_updates(store: Store) -> None:
    await add(store, a_thread("t1", ts="1.1", card_ts="1.1"), say=[CARD, a_post("a")])
    await refuse(store, SlackMethod.UPDATE, "C1")
    assert [item.notice.key for item in await claim_notices(store)] == ["t1/a"]


async def test_progress_on_the_card_does_not_hide_a_change_of_state(store: Store) -> None:
    await add(store, a_thread("t1", ts="1.1", card_ts="1.1"), say=[CARD, CARD_PROGRESSED])
    progress = SlackLimits(dict.fromkeys(SLACK_LIMITS.methods, Limit(2, 2.0)), {})
    await add(store, a_thread("t2", channel_id="C2", ts="2.1", card_ts="2.1"), say=[CARD_PROGRESSED])
    await claim_notices(store, limit=1, limits=progress)
    assert not await claim_notices(store, limits=progress), "the rest is for new states"
    await say(store, CARD, thread="t2")
    assert [item.notice.key for item in await claim_notices(store, limits=progress)] == ["t2/card"]


async def test_outdated_call_limits_are_deleted(store: Store, clock: FakeClock, sql: Sql) -> None:
    await refuse(store, SlackMethod.POST_MESSAGE, "C1", 1.0)
    await refuse(store, SlackMethod.ADD_REACTION, "C1", 1.0)
    clock.advance(10.0)
    kind = OldRows.SLACK_CALLS
    assert await store.transact(lambda tx: tx.retention.delete_old(kind, before=clock.now(), limit=9)) == 1
    assert await sql("SELECT channel_id FROM slack_calls") == [("",), ("",)]
