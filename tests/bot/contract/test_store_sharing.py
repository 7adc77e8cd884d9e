"""SQLite's transactions share commits, and acknowledgements come first; PostgreSQL reserves connections for them."""

import asyncio
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from sqlalchemy import text
from support.worlds.store_world import (
    CARD,
    Opener,
    Sql,
    StoreWorld,
    a_follow_up,
    a_post,
    a_thread,
    changed,
    on_postgres,
    on_sqlite,
    unchanged,
)

from bot.domain.requests.request import Person, Reply, RequestState
from bot.errors import StoreUnavailable
from bot.queue import sqlite_thread
from bot.queue.sqlite_thread import WorkSuspendedError
from bot.runtime.health import RecordingHealth
from bot.scheduler.database_check import DatabaseProbe
from bot.store.store import SqlStore, Transaction

Work = Callable[[Transaction], Awaitable[object]]


@asynccontextmanager
async def held(store: StoreWorld, then: Work | None = None) -> AsyncIterator[None]:
    """A transaction stays open until this ends; later ones wait."""
    begun, goes_on = threading.Event(), threading.Event()

    async def hold(tx: Transaction) -> None:
        begun.set()
        goes_on.wait(10)
        if then is not None:
            await then(tx)

    holding = asyncio.create_task(store.transact(hold))
    await asyncio.to_thread(begun.wait, 10)
    try:
        yield
    finally:
        goes_on.set()
        await asyncio.gather(holding, return_exceptions=True)


async def asked(store: StoreWorld, *works: Work, urgent: bool = False) -> list["asyncio.Task[object]"]:
    """Requests these, in this order."""
    tasks = [asyncio.create_task(store.transact(work, urgent=urgent)) for work in works]
    await asyncio.sleep(0)
    return tasks


def adding(name: str, prompt: str = "Do it") -> Work:
    return lambda tx: tx.threads.add(a_thread(name, prompt=prompt))


def noting(order: list[str], name: str) -> Work:
    async def note(tx: Transaction) -> None:
        order.append(name)

    return note


def names(file: Path) -> list[str]:
    """Returns the threads that another program sees."""
    with closing(sqlite3.connect(file)) as other:
        return [name for (name,) in other.execute("SELECT id FROM threads ORDER BY id")]


@pytest.fixture
async def unhurried(another_store: Opener) -> StoreWorld:
    """However slow the machine, everything that waits shares one transaction."""
    return await another_store(sharing=60.0)


@on_sqlite
async def test_no_work_is_answered_before_the_shared_commit(unhurried: StoreWorld, scratch: Path) -> None:
    seen: list[list[str]] = []

    async def look(tx: Transaction) -> None:
        seen.append(names(scratch / "pagehand.db"))

    async with held(unhurried):
        tasks = await asked(unhurried, adding("t1"), adding("t2"), look)
    assert await asyncio.gather(*tasks) == [True, True, None]
    assert seen == [[]]
    assert names(scratch / "pagehand.db") == ["t1", "t2"]


@on_sqlite
async def test_work_of_one_commit_is_answered_at_once(unhurried: StoreWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    answers = Mock(wraps=loop.call_soon_threadsafe)
    async with held(unhurried):
        monkeypatch.setattr(loop, "call_soon_threadsafe", answers)
        tasks = await asked(unhurried, adding("t1"), adding("t2"))
    assert await asyncio.gather(*tasks) == [True, True]
    answers.assert_called_once()


@on_sqlite
async def test_failing_work_rolls_back_only_its_own_changes(unhurried: StoreWorld, scratch: Path) -> None:
    async def fails(tx: Transaction) -> None:
        await tx.threads.add(a_thread("bad"))
        await tx.notices.add("bad", CARD)
        raise LookupError("a fault of ours")

    async with held(unhurried, then=fails):
        tasks = await asked(unhurried, adding("t1"), fails, adding("t2"))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [result if isinstance(result, bool) else type(result) for result in results] == [True, LookupError, True]
    assert names(scratch / "pagehand.db") == ["t1", "t2"]


@on_sqlite
async def test_work_that_fills_the_disk_fails_alone(unhurried: StoreWorld, scratch: Path) -> None:
    """SQLite then rolls back the whole transaction, not only what the savepoint holds."""

    async def limit(tx: Transaction) -> None:
        await tx.session.execute(text("PRAGMA max_page_count = 60"))

    async with held(unhurried, then=limit):
        tasks = await asked(unhurried, adding("t1"), adding("big", "x" * 1_000_000), adding("t2"))
    small, big, another = await asyncio.gather(*tasks, return_exceptions=True)
    assert small is another is True
    assert isinstance(big, StoreUnavailable)
    assert "disk is full" in str(big)
    assert names(scratch / "pagehand.db") == ["t1", "t2"]


@on_sqlite
async def test_urgent_work_goes_first(store: StoreWorld) -> None:
    order: list[str] = []
    async with held(store):
        others = await asked(store, noting(order, "poll"), noting(order, "result"))
        urgent = await asked(store, noting(order, "command"), noting(order, "reply"), urgent=True)
    await asyncio.gather(*others, *urgent)
    assert order == ["command", "reply", "poll", "result"]


@on_sqlite
async def test_urgent_work_is_committed_before_anything_else_begins(unhurried: StoreWorld) -> None:
    """Otherwise it would be answered only with everything in its transaction, such as many polls."""
    answered, seen = threading.Event(), list[bool]()

    async def long(tx: Transaction) -> None:
        seen.append(answered.wait(10))

    async def short(tx: Transaction) -> None:
        pass

    async with held(unhurried):
        others = await asked(unhurried, long)
        [urgent] = await asked(unhurried, short, urgent=True)
    await urgent
    answered.set()
    await asyncio.gather(*others)
    assert seen == [True]


@on_sqlite
async def test_a_flood_of_urgent_work_does_not_starve_the_rest(store: StoreWorld) -> None:
    order: list[str] = []
    async with held(store):
        other = await asked(store, noting(order, "other"))
        flood = await asked(store, *[noting(order, "urgent")] * (2 * sqlite_thread.MOST_IN_A_ROW), urgent=True)
    await asyncio.gather(*other, *flood)
    assert order.index("other") == sqlite_thread.MOST_IN_A_ROW


@on_sqlite
async def test_work_that_awaits_anything_else_is_refused(store: StoreWorld) -> None:
    """It would block the one thread, and with it the database."""

    async def waits(tx: Transaction) -> None:
        await tx.threads.add(a_thread())
        await asyncio.sleep(0)

    with pytest.raises(WorkSuspendedError):
        await store.transact(waits)
    await store.add(a_thread())


@on_sqlite
async def test_work_that_waits_too_long_fails_and_is_not_done_later(store: StoreWorld, scratch: Path) -> None:
    opened = store.store
    assert isinstance(opened, SqlStore)
    impatient = SqlStore(opened._database, opened._clock, 0.05, lambda _, __: None)
    async with held(store):
        with pytest.raises(StoreUnavailable, match="too busy"):
            await impatient.transact(adding("t1"))
    await store.add(a_thread("t2"))
    assert names(scratch / "pagehand.db") == ["t2"]


@on_sqlite
async def test_closing_finishes_waiting_work_first(store: StoreWorld, scratch: Path) -> None:
    async with held(store):
        tasks = await asked(store, adding("t1"))
        closing_it = asyncio.create_task(store.close())
        await asyncio.sleep(0)
    await closing_it
    assert await asyncio.gather(*tasks) == [True]
    assert names(scratch / "pagehand.db") == ["t1"]
    await store.add(a_thread("t2"))  # it reopens on demand


@on_sqlite
async def test_a_hanging_disk_does_not_block_shutdown(another_store: Opener) -> None:
    store = await another_store(closing=0.01)
    async with held(store):
        async with asyncio.timeout(5):
            await store.close()
    await store.add(a_thread())


@on_postgres
async def test_urgent_work_gets_a_connection(store: StoreWorld) -> None:
    goes_on = asyncio.Event()
    await store.add(a_thread("t0"))
    recording_health = RecordingHealth(time.monotonic)

    async def at_work(tx: Transaction) -> None:
        await tx.threads.get("t0")
        await goes_on.wait()

    loops = await asked(store, *[at_work] * 12)
    try:
        async with asyncio.timeout(3):
            await store.transact(adding("t1"), urgent=True)
            await DatabaseProbe(store, recording_health).probe()
        assert not recording_health.failing()
    finally:
        goes_on.set()
        await asyncio.gather(*loops)


@on_postgres
async def test_urgent_work_goes_first_on_postgresql(another_store: Opener) -> None:
    store = await another_store(yielding=60.0)
    order: list[str] = []
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def command(tx: Transaction) -> None:
        begun.set()
        await goes_on.wait()
        order.append("command")

    urgent = await asked(store, command, urgent=True)
    await begun.wait()
    other = await asked(store, noting(order, "poll"))
    await store.transact(adding("t1"), urgent=True)
    goes_on.set()
    await asyncio.gather(*urgent, *other)
    assert order == ["command", "poll"]


OWNERS = ("one", "two", "three")


@pytest.mark.promise("one owner")
async def test_owners_never_claim_the_same_row(stores: Sequence[StoreWorld]) -> None:
    names = [f"t{n:02}" for n in range(40)]
    for name in names:
        await stores[0].watched(name)
        await stores[0].add(a_follow_up("1", name))
        await stores[0].say(a_post("a"), thread=name)
    taken: Counter[str] = Counter()

    async def take(store: StoreWorld, owner: str) -> None:
        while True:
            polls = await store.claim_polls(owner, limit=4)
            requests = await store.claim_requests(owner, limit=4)
            notices = await store.claim_notices(owner, limit=4)
            taken.update(f"watch {thread.id}" for thread in polls)
            taken.update(f"request {item.request.thread_id}" for item in requests)
            taken.update(f"notice {item.notice.thread_id}" for item in notices)
            if not (polls or requests or notices):
                return

    await asyncio.gather(*(take(store, owner) for store, owner in zip(stores, OWNERS, strict=True) for _ in range(2)))
    # Rows locked by another owner are skipped, so a last round takes the rest.
    await take(stores[0], "one")
    assert taken == Counter(f"{kind} {name}" for kind in ("watch", "request", "notice") for name in names)


@pytest.mark.promise("one owner")
async def test_a_thread_has_one_request_in_flight(stores: Sequence[StoreWorld]) -> None:
    await stores[0].watched()
    await stores[0].add(*[a_follow_up(f"{n}") for n in range(8)])
    under_way: list[str] = []
    sent: list[str] = []

    async def send_requests(store: StoreWorld, owner: str) -> None:
        while len(sent) < 8:
            for item in await store.claim_requests(owner):
                under_way.append(item.request.text)
                assert len(under_way) == 1
                await asyncio.sleep(0)
                under_way.remove(item.request.text)
                sent.append(item.request.text)
                await store.settle(item.request.id, RequestState.ACCEPTED)

    await asyncio.gather(*(send_requests(store, owner) for store, owner in zip(stores, OWNERS, strict=True)))
    assert sent == [f"{n}" for n in range(8)]


@pytest.mark.full
@pytest.mark.promise("one owner")
async def test_concurrent_polls_and_answers_lose_no_update(stores: Sequence[StoreWorld], sql: Sql) -> None:
    names = [f"t{n}" for n in range(5)]
    for name in names:
        await stores[0].watched(name)

    async def answer(name: str) -> None:
        async def work(tx: Transaction) -> None:
            thread = await tx.threads.get(name)
            assert thread is not None
            await tx.threads.save_state(name, replace(thread.state, round=thread.state.round + 1), poll_in=0.0)
            await tx.notices.add(name, CARD)

        for _ in range(10):
            await stores[0].transact(work)

    async def poll(store: StoreWorld, owner: str) -> None:
        for n in range(20):
            items = await store.claim_polls(owner)
            polls = [
                changed(
                    item,
                    a_post(f"{owner}{n}"),
                    not_found_count=item.state.failure.not_found_count + 1,
                    next_poll_in=0.0,
                )
                if index % 2
                else unchanged(item, next_poll_in=0.0)
                for index, item in enumerate(reversed(items))
            ]
            await store.save_polls(*polls, owner=owner)

    await asyncio.gather(*(answer(name) for name in names), poll(stores[1], "two"), poll(stores[2], "three"))
    state = [(await stores[0].get_thread(name)).state for name in names]
    assert [item.round for item in state] == [10] * len(names)
    [(posts,)] = await sql("SELECT count(*) FROM notices WHERE delivery = 'post'")
    assert posts == sum(item.failure.not_found_count for item in state) > 0


@pytest.mark.promise("one owner")
@on_postgres  # on SQLite one transaction locks the whole database
async def test_of_cards_arriving_at_once_the_newest_takes_unassigned_replies(
    stores: Sequence[StoreWorld],
) -> None:
    """Otherwise each would leave it to the other one, which is also in flight."""
    for name in ("t1", "t2"):
        await stores[0].transact(partial(_card_to_come, name))
    reply = Reply(Person("UANA", "T1"), "C1", "1700000000.000900", "1700000002.000100", "Fix it", mentions_us=True)
    assert await stores[0].transact(lambda tx: tx.early_replies.keep(reply))
    second: list[asyncio.Task[Sequence[Reply]]] = []

    async def first(tx: Transaction) -> Sequence[Reply]:
        taken = await _card_arrives("t1", tx)
        second.append(asyncio.create_task(stores[1].transact(partial(_card_arrives, "t2"))))
        await asyncio.wait(second, timeout=0.5)  # it ends, unless it waits for this one
        return taken

    assert await stores[0].transact(first) == []
    assert await second[0] == [reply]


async def _card_to_come(name: str, tx: Transaction) -> None:
    await tx.threads.add(a_thread(name, ts=None))
    await tx.notices.add(name, CARD)


async def _card_arrives(name: str, tx: Transaction) -> Sequence[Reply]:
    ts = f"1700000003.00010{name[-1]}"
    assert await tx.threads.get(name)
    await tx.threads.set_card(name, ts)
    return await tx.early_replies.take("C1", ts)
