"""Who listened until when, the gaps between, and the deletion of old rows."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    CARD,
    Sql,
    StoreWorld,
    a_follow_up,
    a_post,
    a_start,
    a_thread,
    an_answer,
)

from bot.domain.gaps import BEAT, WEEK, Gap, Listening
from bot.domain.requests.audit import AuditAction, AuditEntry
from bot.domain.requests.request import Person, Reply, RequestKind, RequestState, WayIn
from bot.domain.threads.thread import ThreadState
from bot.store.gaps import ClaimedGap
from bot.store.retention import Deleted
from bot.store.store import Transaction

pytestmark = pytest.mark.either_database

HERE = Listening(-1.0, 0.0)
"""Listening for a second."""


async def listens(store: StoreWorld, owner: str = "one", now: Listening = HERE) -> bool:
    return await store.transact(lambda tx: tx.gaps.listens(owner, now))


async def claim(store: StoreWorld, owner: str = "one", limit: int = 10) -> list[ClaimedGap]:
    return list(await store.transact(lambda tx: tx.gaps.claim(owner, lease=30.0, limit=limit)))


async def close(store: StoreWorld, gap: Gap, owner: str = "one") -> None:
    await store.transact(lambda tx: tx.gaps.close(gap, owner))


@pytest.fixture
async def began(store: StoreWorld, clock: FakeClock) -> float:
    """Somebody has listened before; the first gap is read. Returns until when."""
    assert await listens(store)
    await close(store, await found(store))
    return clock.time


async def found(store: StoreWorld, **terms: Any) -> Gap:
    """The only gap."""
    (claimed,) = await claim(store, **terms)
    return claimed.gap


async def test_a_new_database_starts_now(store: StoreWorld, clock: FakeClock) -> None:
    """Also one that was restored from a version that noted no gaps."""
    await store.transact(lambda tx: tx.gaps.restored())
    assert await claim(store) == []
    assert await listens(store)
    assert await claim(store) == [ClaimedGap(Gap("", "", clock.time, clock.time, first=True), 1)]


async def test_the_time_in_which_nobody_listened_is_a_gap(store: StoreWorld, clock: FakeClock, began: float) -> None:
    clock.time += 600
    assert await listens(store, "two")
    assert await found(store) == Gap("", "", began, clock.time - 1)


async def test_a_half_open_connection_is_a_gap_since_its_answer(
    store: StoreWorld, clock: FakeClock, began: float
) -> None:
    clock.time += 20
    await listens(store, now=Listening(-21.0, -18.0))
    clock.time += 1
    assert await listens(store, now=Listening(0.0, 0.0))
    assert await found(store) == Gap("", "", began + 2, clock.time)


async def test_while_another_process_listens_there_is_no_gap(store: StoreWorld, clock: FakeClock, began: float) -> None:
    await listens(store, "two")
    clock.time += BEAT
    assert not await listens(store, "three")
    assert await claim(store) == []
    clock.time += BEAT
    await listens(store, "two", Listening(-1.0 - 2 * BEAT, 0.0))
    clock.time += 2 * BEAT
    assert await claim(store) == []
    clock.time += 2 * BEAT
    assert await claim(store) == []


async def test_a_process_that_died_just_before_did_not_listen(
    store: StoreWorld, clock: FakeClock, began: float
) -> None:
    await listens(store, "two")
    died = clock.time
    clock.time += BEAT
    await listens(store, "three")
    resumed = clock.time - 1
    clock.time += 4 * BEAT
    assert await found(store) == Gap("", "", died, resumed)


async def test_a_gap_is_claimed_once_and_again_after_its_lease(
    store: StoreWorld, clock: FakeClock, began: float
) -> None:
    clock.time += 600
    await listens(store, "two")
    gap = await found(store)
    assert await claim(store, "two") == []
    clock.time += 20
    assert await store.transact(lambda tx: tx.gaps.keep(gap, "one", lease=30.0)) == clock.time
    clock.time += 20
    assert await claim(store, "two") == []
    clock.time += 20
    assert [each.attempts for each in await claim(store, "two")] == [2]
    assert await store.transact(lambda tx: tx.gaps.keep(gap, "one", lease=30.0)) is None
    await close(store, gap, "one")
    clock.time += 40
    assert len(await claim(store)) == 1


async def test_a_gap_that_became_longer_is_read_again(store: StoreWorld, clock: FakeClock, began: float) -> None:
    clock.time += 600
    await listens(store, "two")
    shorter = await found(store)
    clock.time += 600
    await listens(store, "three")
    await close(store, shorter)
    assert await found(store) == Gap("", "", began, clock.time - 1)


async def test_it_is_spread_over_jobs_direct_messages_and_channels(store: StoreWorld, clock: FakeClock) -> None:
    now = clock.time
    await store.add(a_thread("running", ts="1.1"), a_thread("second", ts="1.1", number=1, card_ts="1.2"))
    await store.add(a_thread("asked", root_ts="2.1"))
    await store.add(a_thread("direct", channel_id="D1", ts="3.1"))
    await store.add(a_thread("old", ts="4.1"))
    await store.add(a_thread("introduction", ts="5.1", requester_id=""))
    gap = Gap("", "", now + 2 * WEEK, now + 2 * WEEK + 600)
    for name in ("running", "asked"):
        thread = await store.get_thread(name)
        await store.save(name, thread.state, poll_in=0.0)
    clock.time = gap.until
    direct = await store.get_thread("direct")
    await store.save("direct", direct.state, poll_in=None)
    await store.transact(lambda tx: tx.gaps.spread(gap))
    spread = [each.gap for each in await claim(store, limit=20)]
    places = {(each.channel_id, each.thread_ts) for each in spread}
    assert places == {("C1", "1.1"), ("C1", "2.1"), ("D1", "3.1"), ("D1", ""), ("*", "")}
    assert {(each.since, each.until) for each in spread} == {(gap.since, gap.until)}


async def test_after_a_restored_backup_all_since_is_asked_about(
    store: StoreWorld, clock: FakeClock, began: float
) -> None:
    clock.time += 600
    await store.transact(lambda tx: tx.gaps.restored())
    clock.time += 60
    await listens(store, "two")
    assert await found(store) == Gap("", "", began, clock.time - 1, asks=True)


async def test_a_reaction_for_a_stop_is_new_once(store: StoreWorld) -> None:
    await store.add(a_thread("t1", ts="1.1"))
    assert await store.transact(lambda tx: tx.gaps.is_new_stop("t1", "UANA"))
    assert not await store.transact(lambda tx: tx.gaps.is_new_stop("t1", "UANA"))
    stop = replace(a_start(), id="s", kind=RequestKind.STOP, source_key="s", person_id="UBEN", way_in=WayIn.REACTION)
    await store.add(a_thread("t2", ts="2.1"), replace(stop, thread_id="t2"))
    assert not await store.transact(lambda tx: tx.gaps.is_new_stop("t2", "UBEN"))


@pytest.mark.parametrize("gap", [Gap("C1", "1.1", 1.0, 2.0), Gap("", "", 1.0, 2.0)], ids=["of the thread", "of all"])
async def test_words_wait_for_the_history_of_their_thread_half_a_minute(
    store: StoreWorld, clock: FakeClock, sql: Sql, gap: Gap
) -> None:
    received: dict[str, Any] = {"state": RequestState.RECEIVED, "recorded_at": clock.time}
    await store.add(a_thread("t1", ts="1.1"), a_follow_up("3.1", **received))
    await store.add(a_thread("t2", channel_id="C2", ts="1.1"))
    await store.transact(lambda tx: tx.gaps.add([gap], newest=1.0))
    assert await store.claim_received() == []
    stop = replace(a_start("t1", **received), id="stop", kind=RequestKind.STOP, source_key="stop")
    await store.transact(lambda tx: tx.requests.add(stop))
    assert [each.request.id for each in await store.claim_received()] == ["stop"]
    clock.time += 31
    assert "t1-3.1" in [each.request.id for each in await store.claim_received()]


async def remove(store: StoreWorld, before: float, limit: int = 10) -> int:
    return await store.transact(lambda tx: tx.retention.delete_finished(before=before, limit=limit))


async def count(sql: Sql, table: str) -> int:
    return int((await sql(f"SELECT count(*) FROM {table}"))[0][0])  # noqa: S608 - the tests' own words


async def finished(store: StoreWorld, name: str) -> None:
    thread = a_thread(name, ts=f"{name}.1")
    await store.add(thread, a_start(name, state=RequestState.ACCEPTED))


async def test_old_finished_threads_are_removed_with_all_their_rows(
    store: StoreWorld, sql: Sql, clock: FakeClock
) -> None:
    await finished(store, "t1")
    clock.advance(100)
    assert await remove(store, clock.now()) == 1
    assert [await count(sql, table) for table in ("threads", "polls", "requests", "notices")] == [0, 0, 0, 0]


async def test_young_or_open_threads_are_kept(store: StoreWorld, clock: FakeClock) -> None:
    await store.add(a_thread("request", ts="1.1"), a_start("request"))
    await store.add(a_thread("notice", ts="1.2"), say=[a_post("a")])
    await store.add(a_thread("watch", ts="1.3"))
    await store.transact(lambda tx: tx.threads.save_state("watch", ThreadState(), poll_in=10.0))
    clock.advance(100)
    await finished(store, "young")
    assert await remove(store, clock.now()) == 0


async def test_replies_behind_an_abandoned_start_do_not_keep_it_forever(store: StoreWorld, clock: FakeClock) -> None:
    start = a_start("t1", state=RequestState.UNCERTAIN)
    await store.add(a_thread("t1", ts="1.1"), start, a_follow_up("2.1", "t1", recorded_at=clock.now()))
    clock.advance(100)
    assert await remove(store, clock.now() - 100) == 0
    assert await remove(store, clock.now()) == 1


async def test_forgetting_a_person_covers_every_table(store: StoreWorld, sql: Sql) -> None:
    await store.add(a_thread("hers", requester_id="UANA"), a_start("hers"), say=[a_post("a")])
    replies = [a_follow_up(f"5.{person}", "his", person_id=person) for person in ("UANA", "UBEN")]
    told = [an_answer(person, person) for person in ("UANA", "UBEN")]
    await store.add(a_thread("his", requester_id="UBEN", ts="5.1"), *replies, say=told)

    async def forget(tx: Transaction) -> Deleted:
        return await tx.retention.forget_person("UANA", limit=10)

    assert await store.transact(forget) == Deleted(jobs=1, requests=2, notices=2)
    assert not await store.transact(forget)
    assert [await count(sql, table) for table in ("threads", "polls", "requests", "notices")] == [1, 1, 1, 1]


async def test_forgetting_a_channel_deletes_replies_that_wait_for_its_card(store: StoreWorld, sql: Sql) -> None:
    await store.add(a_thread("here", channel_id="C1"), say=[CARD])
    await store.add(a_thread("there", channel_id="C2"))
    reply = Reply(Person("UANA", "T1"), "C1", "1700000000.5", "1700000000.6", "words")
    assert await store.transact(lambda tx: tx.early_replies.keep(reply))
    assert await store.transact(lambda tx: tx.message_versions.note(reply.version))
    for channel in ("C1", "C2"):
        await store.transact(partial(_audit, AuditEntry(AuditAction.REFUSED, reply.person, channel)))
    forgotten = await store.transact(lambda tx: tx.retention.forget_channel("C1", limit=10))
    assert forgotten == Deleted(jobs=1, notices=1, early_replies=1, others=2)
    assert [await count(sql, table) for table in ("threads", "polls", "audit")] == [1, 1, 1]


async def _audit(entry: AuditEntry, tx: Transaction) -> None:
    await tx.audit.add(entry)
