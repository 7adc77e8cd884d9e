"""Claims: due work is claimed once, in order and within its limits, and again if its owner is gone."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from sqlalchemy import insert
from support.databases import engine_for
from support.fakes.ports import FakeClock
from support.worlds.core_world import ANA, CoreWorld
from support.worlds.store_world import (
    CARD,
    JOB,
    LEASE,
    Sql,
    StoreWorld,
    a_follow_up,
    a_post,
    a_reaction,
    a_start,
    a_thread,
    an_answer,
)

from bot.domain.permissions import PermissionRules
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import RequestState, WayIn
from bot.domain.slack_limits import SLACK_LIMITS, Limit, SlackLimits, SlackMethod
from bot.notices.notice import CARD_PROGRESSED, Reaction, ReactionChanged
from bot.store.request_queue import ClaimedRequest
from bot.store.retention import OldRows
from bot.store.schema.rows import request_values
from bot.store.schema.tables import requests
from bot.store.store import Transaction, open_store
from bot.store.threads import ClaimedPoll, UnchangedPoll


@pytest.mark.either_database
async def test_a_claimed_request_counts_its_attempt(store: StoreWorld, clock: FakeClock) -> None:
    await store.add(a_thread(ts="1.1"), a_start())
    first = clock.now()
    [claimed] = await store.claim_requests()
    assert claimed.request == await store.get_request("t1-start")
    assert (claimed.request.state, claimed.request.attempts) == (RequestState.SENDING, 1)
    assert claimed.request.first_tried_at == first
    await store.settle("t1-start", RequestState.WAITING, due_in=5.0, problem="busy")
    assert not await store.claim_requests()
    clock.advance(5.0)
    [claimed] = await store.claim_requests()
    assert (claimed.request.attempts, claimed.request.first_tried_at, claimed.uncertain) == (2, first, False)


@pytest.mark.either_database
async def test_a_follow_up_in_backoff_delays_only_its_own_thread(store: StoreWorld) -> None:
    await store.watched("t1")
    await store.watched("t2")
    await store.add(a_follow_up("1"), a_follow_up("2"), a_follow_up("1", "t2"))
    claimed = await store.claim_requests()
    assert {item.request.id for item in claimed} == {"t1-1", "t2-1"}
    await store.settle("t1-1", RequestState.WAITING, due_in=60.0)
    await store.settle("t2-1", RequestState.ACCEPTED)
    assert not await store.claim_requests()


@pytest.mark.either_database
async def test_a_reopened_request_waits_for_the_one_in_flight(store: StoreWorld) -> None:
    await store.watched()
    await store.add(a_follow_up("1"), a_follow_up("2"))
    await store.claim_requests()
    await store.settle("t1-1", RequestState.UNCERTAIN)
    assert [item.request.id for item in await store.claim_requests()] == ["t1-2"]
    await store.settle("t1-1", RequestState.WAITING)
    assert not await store.claim_requests()
    await store.settle("t1-2", RequestState.ACCEPTED)
    assert [item.request.id for item in await store.claim_requests()] == ["t1-1"]


@pytest.mark.either_database
async def test_a_request_with_an_expired_lease_is_uncertain(store: StoreWorld, clock: FakeClock) -> None:
    await store.add(a_thread(ts="1.1"), a_start())
    await store.claim_requests("dead")
    clock.advance(LEASE - 1)
    assert not await store.claim_requests("alive")
    assert await store.transact(lambda tx: tx.requests.claimed(a_start(), "dead", RequestState.SENDING))
    clock.advance(1)
    [claimed] = await store.claim_requests("alive")
    assert (claimed.uncertain, claimed.request.attempts) == (True, 2)
    assert not await store.transact(lambda tx: tx.requests.claimed(a_start(), "dead", RequestState.SENDING))
    assert await store.transact(lambda tx: tx.requests.claimed(a_start(), "alive", RequestState.SENDING))
    await store.settle("t1-start", RequestState.ACCEPTED)
    assert not await store.transact(lambda tx: tx.requests.claimed(a_start(), "alive", RequestState.SENDING))


@pytest.mark.either_database
async def test_two_expired_leases_in_a_thread_do_not_block_each_other(store: StoreWorld, clock: FakeClock) -> None:
    await store.watched()
    await store.add(a_follow_up("1"), a_follow_up("2"))
    await store.claim_requests()
    await store.settle("t1-1", RequestState.UNCERTAIN)
    await store.claim_requests()
    await store.settle("t1-1", RequestState.WAITING)
    clock.advance(LEASE)
    assert [item.request.id for item in await store.claim_requests()] == ["t1-1"]


def known(*thread_ids: str) -> Callable[[ClaimedPoll], bool]:
    return lambda poll: poll.thread_id in thread_ids


@pytest.mark.either_database
async def test_a_watch_of_a_known_thread_is_claimed_without_it(store: StoreWorld, clock: FakeClock) -> None:
    """It is held, saved with what to remember, and read like any other."""
    await store.watched("t1")
    clock.advance(1.0)
    other = await store.watched("t2")
    claimed = await store.transact(lambda tx: tx.polls.claim("one", lease=LEASE, limit=10, known=known("t1")))
    first = ClaimedPoll("t1", 1, "C1", "docs", JOB.id, seen=None)
    assert claimed == [first, ClaimedPoll("t2", 1, "C1", "docs", JOB.id, seen=None, thread=other)]
    assert not await store.claim_polls("two")
    assert await store.transact(lambda tx: tx.polls.thread(first)) == await store.get_thread("t1")
    assert await store.save_polls(UnchangedPoll("t1", 1, 5.0, "remembered")) == 1
    clock.advance(5.0)
    claimed = await store.transact(lambda tx: tx.polls.claim("two", lease=LEASE, limit=10, known=known("t1")))
    assert claimed == [replace(first, seen="remembered")]


@pytest.mark.either_database
async def test_a_post_in_an_existing_thread_waits_for_its_card(store: StoreWorld) -> None:
    """Whatever was recorded before the card, the card is posted first."""
    await store.add(a_thread(ts="1.1", card_ts=None), say=[a_post("a")])
    assert not await store.claim_notices()
    await store.say(CARD)
    [card] = await store.claim_notices()
    assert card.notice.key == "t1/card"
    assert not await store.claim_notices("two")
    await store.transact(lambda tx: tx.threads.set_card("t1", "1.2"))
    assert await store.done(card, ts="1.2")
    [post] = await store.claim_notices()
    assert (post.notice.key, post.thread.ts, post.thread.card_ts) == ("t1/a", "1.1", "1.2")


@pytest.mark.either_database
async def test_private_notices_do_not_wait_for_posts_that_wait_for_the_card(store: StoreWorld) -> None:
    """The card may have to wait for the person's answer."""
    await store.add(a_thread(ts="1.1", card_ts=None), say=[a_post("a"), an_answer("b", "UANA"), an_answer("c", "UBEN")])
    for key in ("t1/b", "t1/c"):
        [told] = await store.claim_notices()
        assert told.notice.key == key
        assert not await store.claim_notices("two")
        assert await store.done(told, ts=None)
    assert not await store.claim_notices()


@pytest.mark.either_database
async def test_marks_neither_wait_nor_block(store: StoreWorld, clock: FakeClock) -> None:
    await store.add(a_thread(), say=[a_reaction("m1", "eyes"), CARD, a_reaction("m2", "eyes"), a_post("a")])
    first = await store.claim_notices()
    assert sorted(item.notice.key for item in first) == ["t1/card", "t1/m1", "t1/m2"]
    assert not await store.claim_notices("two")
    for item in first:
        if item.notice.key == "t1/card":
            assert await store.done(item)
        else:
            await store.transact(lambda tx, item=item: tx.notices.postpone(item.notice, "one", due_in=5.0))  # type: ignore[misc]  # bound here, for this turn
    [post] = await store.claim_notices()
    assert post.notice.key == "t1/a"
    clock.advance(5.0)
    assert sorted(item.notice.key for item in await store.claim_notices("two")) == ["t1/m1", "t1/m2"]


async def test_a_mark_in_flight_is_claimed_by_one_owner(store: StoreWorld, clock: FakeClock) -> None:
    await store.add(a_thread(), say=[a_reaction("m", "eyes")])
    [reaction] = await store.claim_notices()
    await store.say(a_reaction("m", "white_check_mark"))
    assert not await store.claim_notices("two")
    assert await store.done(reaction)
    [newer] = await store.claim_notices("two")
    assert newer.notice.message == ReactionChanged("m", Reaction.ACCEPTED)


@pytest.mark.either_database
async def test_a_reopened_card_waits_for_the_post_in_flight(store: StoreWorld) -> None:
    await store.add(a_thread(), say=[CARD])
    await store.deliver_all()
    await store.say(a_post("a"))
    [post] = await store.claim_notices()
    await store.say(CARD)
    assert not await store.claim_notices("two")
    await store.done(post)
    assert await store.deliver_all() == ["t1/card"]


@pytest.mark.either_database
async def test_a_notice_with_an_expired_lease_is_uncertain_until_delivered(store: StoreWorld, clock: FakeClock) -> None:
    await store.add(a_thread(), say=[a_post("a")])
    [first] = await store.claim_notices("dead")
    assert not first.notice.uncertain
    clock.advance(LEASE)
    [second] = await store.claim_notices("alive")
    assert (second.notice.uncertain, second.notice.attempts) == (True, 2)
    assert not await store.done(first, "dead")
    await store.transact(lambda tx: tx.notices.postpone(second.notice, "alive", due_in=0.0))
    [third] = await store.claim_notices("alive")
    assert third.notice.uncertain
    assert await store.done(third, "alive")
    assert not await store.claim_notices()


async def claim_all(store: StoreWorld, owner: str) -> int:
    claims = [await store.claim_requests(owner), await store.claim_notices(owner), await store.claim_polls(owner)]
    return sum(map(len, claims))


@pytest.mark.either_database
async def test_released_work_is_due_at_once(store: StoreWorld) -> None:
    await store.watched()
    await store.add(a_follow_up("1"))
    await store.say(a_post("a"))
    for claim in (store.claim_polls, store.claim_requests, store.claim_notices):
        assert await claim("leaving")
    for gone in ("another", "leaving"):
        assert await claim_all(store, "staying") == 0
        await store.transact(lambda tx, gone=gone: tx.claims.release(gone))  # type: ignore[misc]
    [request] = await store.claim_requests("staying")
    [notice] = await store.claim_notices("staying")
    assert (request.uncertain, notice.notice.uncertain) == (True, True)
    assert await store.claim_polls("staying")


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


async def claim_to_send(store: StoreWorld, limit: int, turn: float) -> Sequence[ClaimedRequest]:
    return await store.transact(lambda tx: tx.requests.claim("one", lease=LEASE, limit=limit, turn=turn))


def people(claimed: Sequence[ClaimedRequest]) -> Counter[str]:
    return Counter(item.request.person_id for item in claimed)


@pytest.mark.first(turn=1)
@pytest.mark.promise("floods")
@pytest.mark.parametrize("turn", FEW)
async def test_a_single_request_among_thousands_is_prepared_next(store: StoreWorld, database: str, turn: float) -> None:
    """Whoever it is by, and in any thread; the one with thousands gets the remaining slots."""
    for name in ("t1", "t2"):
        await store.watched(name)
    await flood(database, person="UMANY", threads=["t1"], state=RequestState.RECEIVED)
    received = RequestState.RECEIVED
    await store.add(a_follow_up("2.1", person_id="UANA", state=received))
    await store.add(a_follow_up("2.2", "t2", person_id="UZOE", state=received))
    await store.add(a_follow_up("2.3", "t2", person_id="UMANY", state=received))
    claimed = await store.claim_received(limit=8, turn=turn)
    assert people(claimed) == {"UMANY": 6, "UANA": 1, "UZOE": 1}
    assert "t2-2.3" in {item.request.id for item in claimed}
    assert people(await store.claim_received(limit=8, turn=turn)) == {"UMANY": 8}


@pytest.mark.full
@pytest.mark.promise("floods")
@pytest.mark.parametrize("turn", FEW)
async def test_a_single_request_among_thousands_is_sent_next(store: StoreWorld, database: str, turn: float) -> None:
    """The thousands are in one thread, where they go one by one, and in many."""
    names = [f"{n:03}" for n in range(50)]
    for name in (*names, "other"):
        await store.watched(name)
    await flood(database, person="UMANY", threads=names, state=RequestState.WAITING)
    await store.add(a_follow_up("2.1", "other", person_id="UANA"))
    claimed = await claim_to_send(store, limit=4, turn=turn)
    assert people(claimed) == {"UMANY": 3, "UANA": 1}
    assert len({item.thread.id for item in claimed}) == 4
    assert {item.request.written_at for item in claimed if item.request.person_id == "UMANY"} <= {
        f"1700000000.{n:06}" for n in range(50)
    }


@pytest.mark.full
@pytest.mark.promise("floods")
async def test_a_thread_with_thousands_of_requests_keeps_its_order(store: StoreWorld, database: str) -> None:
    """Also those of several people."""
    await store.watched()
    await flood(database, person="UMANY", threads=["t1"], state=RequestState.WAITING)
    await store.add(a_follow_up("1700000000.0000005", person_id="UANA"))
    order = []
    for turn in TURN[:4]:
        [claimed] = await claim_to_send(store, limit=4, turn=turn)
        order.append(claimed.request.written_at)
        await store.settle(claimed.request.id, RequestState.ACCEPTED)
    assert order == ["1700000000.000000", "1700000000.0000005", "1700000000.000001", "1700000000.000002"]


async def test_only_expired_claims_of_others_are_taken_over(database: str, clock: FakeClock) -> None:
    takeovers: list[int] = []
    opened = await open_store(database, clock=clock, committed=lambda _, count: takeovers.append(count))
    store = StoreWorld(opened)
    await store.add(a_thread(ts="1.1"), a_start(), say=[a_post("p")])
    await store.watched("t2")
    first = await claim_all(store, "one")
    assert first >= 3
    assert await claim_all(store, "two") == sum(takeovers) == 0
    clock.advance(LEASE + 1.0)
    assert await claim_all(store, "two") == sum(takeovers) == first
    await store.close()


HOUR = 3600.0


async def ask(store: StoreWorld, request_id: str, *, person: str = "UANA", limit: int = 2) -> float | None:
    """Counts a request if its person may make it; otherwise returns when they may."""

    async def work(tx: Transaction) -> float | None:
        free_at = await tx.limits.free_at(person, request_id, limit=limit, within=HOUR)
        if free_at is None:
            await tx.limits.count(person, request_id)
        return free_at

    return await store.transact(work)


@pytest.mark.either_database
@pytest.mark.promise("hourly limit")
async def test_the_hourly_limit_frees_up_when_the_oldest_is_an_hour_old(store: StoreWorld, clock: FakeClock) -> None:
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


@pytest.mark.either_database
@pytest.mark.promise("hourly limit")
async def test_a_counted_request_is_neither_recounted_nor_refused(store: StoreWorld, clock: FakeClock) -> None:
    """It is checked again after its project was chosen, or after an edit."""
    for _ in range(3):
        assert await ask(store, "r1", limit=1) is None
        clock.advance(10)
    assert await ask(store, "r2", limit=1) == clock.now() - 30 + HOUR


@pytest.mark.promise("hourly limit")
async def test_the_limit_holds_under_concurrency(stores: Sequence[StoreWorld]) -> None:
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
    stores: Sequence[StoreWorld], sql: Sql, clock: FakeClock
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


async def marks(store: StoreWorld, count: int) -> None:
    """This many due reactions."""
    await store.add(a_thread(), say=[a_reaction(f"m{number}", "eyes") for number in range(count)])


@pytest.mark.either_database
async def test_claims_stay_within_the_call_budget(store: StoreWorld, clock: FakeClock) -> None:
    await marks(store, 9)
    assert len(await store.claim_notices(limit=1, limits=FEW_CALLS)) == 1
    clock.advance(2.0)
    assert len(await store.claim_notices("two", limits=FEW_CALLS)) == 2
    assert not await store.claim_notices(limits=FEW_CALLS)
    clock.advance(1.0)
    assert len(await store.claim_notices(limits=FEW_CALLS)) == 1
    clock.advance(2.0)
    assert len(await store.claim_notices("two", limits=FEW_CALLS)) == 2


@pytest.mark.either_database
async def test_a_reaction_that_is_late_yields_to_one_in_time(store: StoreWorld, clock: FakeClock) -> None:
    await marks(store, 1)
    clock.advance(30.0)
    await store.add(a_thread("in time"), say=[a_reaction("in time", "eyes")])
    claimed = [await store.claim_notices(limit=1, limits=FEW_CALLS) for _ in range(2)]
    assert [item.thread.id for [item] in claimed] == ["in time", "t1"]


@pytest.mark.either_database
async def test_waiting_for_the_call_budget_is_not_an_attempt(store: StoreWorld, clock: FakeClock) -> None:
    await marks(store, 4)
    await store.claim_notices(limits=FEW_CALLS)
    for _ in range(9):
        assert not await store.claim_notices(limits=FEW_CALLS)
    clock.advance(3.0)
    [last] = await store.claim_notices(limits=FEW_CALLS)
    assert last.notice.attempts == 1


async def test_concurrent_claims_share_the_budget(stores: Sequence[StoreWorld]) -> None:
    await marks(stores[0], 30)
    claimed = await asyncio.gather(
        *(store.claim_notices(f"owner {turn}", limits=FEW_CALLS) for turn in range(4) for store in stores)
    )
    assert sum(map(len, claimed)) == 3
    takes = (store.use_budget("users.info", lambda budget: budget.take("users.info", 2), FEW_CALLS) for store in stores)
    assert sorted([grant.calls for grant in await asyncio.gather(*takes)]) == [0, 1, 2]


@pytest.mark.either_database
async def test_a_channel_that_an_older_version_holds_is_held(store: StoreWorld, clock: FakeClock, sql: Sql) -> None:
    await store.add(a_thread("t1", channel_id="C1"), say=[CARD])
    held = "INSERT INTO slack_calls (method, channel_id, tat) VALUES ('chat.postMessage', 'C1', :until)"
    await sql(held, until=clock.now() + 20.0)
    assert not await store.claim_notices()
    clock.advance(20.0)
    assert len(await store.claim_notices()) == 1


@pytest.mark.either_database
async def test_new_cards_come_before_posts_and_posts_before_changed_cards_and_marks(store: StoreWorld) -> None:
    await store.add(a_thread("t1", ts="1.1", card_ts="1.1"), say=[CARD_PROGRESSED, a_reaction("m", "eyes")])
    await store.add(a_thread("t2", channel_id="C2", ts="2.1", card_ts="2.1"), say=[CARD])
    await store.add(a_thread("t3", channel_id="C3"), say=[CARD])
    await store.add(a_thread("t4", channel_id="C4", ts="4.1", card_ts="4.1"), say=[a_post("a")])
    await store.add(a_thread("t5", channel_id="C5", ts="5.1", card_ts="5.1"), say=[an_answer("b", "UANA")])
    keys = [[item.notice.key for item in await store.claim_notices(limit=1)] for _ in range(6)]
    assert keys == [["t5/b"], ["t3/card"], ["t4/a"], ["t2/card"], ["t1/card"], ["t1/m"]]


@pytest.mark.either_database
async def test_posts_do_not_wait_for_card_updates(store: StoreWorld) -> None:
    await store.add(a_thread("t1", ts="1.1", card_ts="1.1"), say=[CARD, a_post("a")])
    await store.refuse(SlackMethod.UPDATE, "C1")
    assert [item.notice.key for item in await store.claim_notices()] == ["t1/a"]


@pytest.mark.either_database
async def test_progress_on_the_card_does_not_hide_a_change_of_state(store: StoreWorld) -> None:
    await store.add(a_thread("t1", ts="1.1", card_ts="1.1"), say=[CARD, CARD_PROGRESSED])
    progress = SlackLimits(dict.fromkeys(SLACK_LIMITS.methods, Limit(2, 2.0)), {})
    await store.add(a_thread("t2", channel_id="C2", ts="2.1", card_ts="2.1"), say=[CARD_PROGRESSED])
    await store.claim_notices(limit=1, limits=progress)
    assert not await store.claim_notices(limits=progress), "the rest is for new states"
    await store.say(CARD, thread="t2")
    assert [item.notice.key for item in await store.claim_notices(limits=progress)] == ["t2/card"]


@pytest.mark.either_database
async def test_outdated_call_limits_are_deleted(store: StoreWorld, clock: FakeClock, sql: Sql) -> None:
    await store.refuse(SlackMethod.POST_MESSAGE, "C1", 1.0)
    await store.refuse(SlackMethod.ADD_REACTION, "C1", 1.0)
    clock.advance(10.0)
    kind = OldRows.SLACK_CALLS
    assert await store.transact(lambda tx: tx.retention.delete_old(kind, before=clock.now(), limit=9)) == 1
    assert await sql("SELECT channel_id FROM slack_calls") == [("",), ("",)]
