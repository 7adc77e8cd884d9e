"""Retention: old, finished rows are deleted, open or young ones stay, and a person or a channel can be forgotten."""

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import CARD, Sql, a_follow_up, a_post, a_start, a_thread, add, an_answer

from bot.domain.requests.request import Person, Reply, RequestState
from bot.domain.threads.thread import ThreadState
from bot.store.retention import Deleted
from bot.store.store import Store, Transaction

pytestmark = pytest.mark.either_database


async def remove(store: Store, before: float, limit: int = 10) -> int:
    return await store.transact(lambda tx: tx.retention.delete_finished(before=before, limit=limit))


async def count(sql: Sql, table: str) -> int:
    return int((await sql(f"SELECT count(*) FROM {table}"))[0][0])  # noqa: S608 - the tests' own words


async def finished(store: Store, name: str) -> None:
    thread = a_thread(name, ts=f"{name}.1")
    await add(store, thread, a_start(name, state=RequestState.ACCEPTED))


async def test_old_finished_threads_are_removed_with_all_their_rows(store: Store, sql: Sql, clock: FakeClock) -> None:
    await finished(store, "t1")
    clock.advance(100)
    assert await remove(store, clock.now()) == 1
    assert [await count(sql, table) for table in ("threads", "polls", "requests", "notices")] == [0, 0, 0, 0]


async def test_young_or_open_threads_are_kept(store: Store, clock: FakeClock) -> None:
    await add(store, a_thread("request", ts="1.1"), a_start("request"))
    await add(store, a_thread("notice", ts="1.2"), say=[a_post("a")])
    await add(store, a_thread("watch", ts="1.3"))
    await store.transact(lambda tx: tx.threads.save_state("watch", ThreadState(), poll_in=10.0))
    clock.advance(100)
    await finished(store, "young")
    assert await remove(store, clock.now()) == 0


async def test_replies_behind_an_abandoned_start_do_not_keep_it_forever(store: Store, clock: FakeClock) -> None:
    start = a_start("t1", state=RequestState.UNCERTAIN)
    await add(store, a_thread("t1", ts="1.1"), start, a_follow_up("2.1", "t1", recorded_at=clock.now()))
    clock.advance(100)
    assert await remove(store, clock.now() - 100) == 0
    assert await remove(store, clock.now()) == 1


async def test_removal_goes_in_steps(store: Store, clock: FakeClock) -> None:
    for name in ("t1", "t2", "t3"):
        await finished(store, name)
    clock.advance(1)
    assert [await remove(store, clock.now(), limit=2) for _ in range(3)] == [2, 1, 0]


async def test_forgetting_a_person_covers_every_table(store: Store, sql: Sql) -> None:
    await add(store, a_thread("hers", requester_id="UANA"), a_start("hers"), say=[a_post("a")])
    told = an_answer("told", "UANA")
    other = an_answer("other", "UBEN")
    await add(
        store,
        a_thread("his", requester_id="UBEN", ts="5.1"),
        a_follow_up("5.2", "his", person_id="UANA"),
        a_follow_up("5.3", "his", person_id="UBEN"),
        say=[told, other],
    )

    async def forget(tx: Transaction) -> Deleted:
        return await tx.retention.forget_person("UANA", limit=10)

    assert await store.transact(forget) == Deleted(jobs=1, requests=2, notices=2)
    assert not await store.transact(forget)
    assert [await count(sql, table) for table in ("threads", "polls", "requests", "notices")] == [1, 1, 1, 1]


async def test_forgetting_a_channel_deletes_replies_that_wait_for_its_card(store: Store, sql: Sql) -> None:
    await add(store, a_thread("here", channel_id="C1"), say=[CARD])
    await add(store, a_thread("there", channel_id="C2"))
    reply = Reply(Person("UANA", "T1"), "C1", "1700000000.5", "1700000000.6", "words")
    assert await store.transact(lambda tx: tx.early_replies.keep(reply))
    assert await store.transact(lambda tx: tx.message_versions.note(reply.version))
    forgotten = await store.transact(lambda tx: tx.retention.forget_channel("C1", limit=10))
    assert forgotten == Deleted(jobs=1, notices=1, early_replies=1, others=1)
    assert [await count(sql, table) for table in ("threads", "polls")] == [1, 1]
