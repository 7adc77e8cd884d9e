"""SQLite's transactions share commits, and acknowledgements come first; PostgreSQL reserves connections for them."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from support.worlds.store_world import CARD, Opener, a_thread, add

from bot.errors import StoreError, StoreUnavailable
from bot.runtime.health.outages import RecordingHealth
from bot.scheduler.database_check import DatabaseProbe
from bot.store.database import sqlite_thread
from bot.store.database.postgres import CONNECTIONS
from bot.store.database.sqlite_thread import WorkSuspendedError
from bot.store.store import SqlStore, Store, Transaction

on_sqlite = pytest.mark.parametrize("server", [pytest.param("sqlite", id="sqlite")], indirect=True)
on_postgres = pytest.mark.parametrize(
    "server", [pytest.param("postgres", id="postgres", marks=pytest.mark.postgres)], indirect=True
)

Work = Callable[[Transaction], Awaitable[object]]


@asynccontextmanager
async def held(store: Store, then: Work | None = None) -> AsyncIterator[None]:
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


async def asked(store: Store, *works: Work, urgent: bool = False) -> list["asyncio.Task[object]"]:
    """Requests these, in this order."""
    tasks = [asyncio.create_task(store.transact(work, urgent=urgent)) for work in works]
    await asyncio.sleep(0)
    return tasks


def adding(name: str, prompt: str = "Do it") -> Work:
    return lambda tx: tx.threads.add(a_thread(name, prompt=prompt))


def names(file: Path) -> list[str]:
    """Returns the threads that another program sees."""
    with closing(sqlite3.connect(file)) as other:
        return [name for (name,) in other.execute("SELECT id FROM threads ORDER BY id")]


@pytest.fixture
async def unhurried(another_store: Opener) -> Store:
    """However slow the machine, everything that waits shares one transaction."""
    return await another_store(sharing=60.0)


@on_sqlite
async def test_no_work_is_answered_before_the_shared_commit(unhurried: Store, scratch: Path) -> None:
    seen: list[list[str]] = []

    async def look(tx: Transaction) -> None:
        seen.append(names(scratch / "pagehand.db"))

    async with held(unhurried):
        tasks = await asked(unhurried, adding("t1"), adding("t2"), look)
    assert await asyncio.gather(*tasks) == [True, True, None]
    assert seen == [[]]
    assert names(scratch / "pagehand.db") == ["t1", "t2"]


@on_sqlite
async def test_failing_work_rolls_back_only_its_own_changes(unhurried: Store, scratch: Path) -> None:
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
async def test_work_that_fills_the_disk_fails_alone(unhurried: Store, scratch: Path) -> None:
    """SQLite then rolls back the whole transaction, not only what the savepoint holds."""

    async def limit(tx: Transaction) -> None:
        await tx.session.connection.exec_driver_sql("PRAGMA max_page_count = 60")

    async with held(unhurried, then=limit):
        tasks = await asked(unhurried, adding("t1"), adding("big", "x" * 1_000_000), adding("t2"))
    small, big, another = await asyncio.gather(*tasks, return_exceptions=True)
    assert small is another is True
    assert isinstance(big, StoreUnavailable)
    assert "disk is full" in str(big)
    assert names(scratch / "pagehand.db") == ["t1", "t2"]


@on_sqlite
async def test_urgent_work_goes_first(store: Store) -> None:
    order: list[str] = []

    def noting(name: str) -> Work:
        async def note(tx: Transaction) -> None:
            order.append(name)

        return note

    async with held(store):
        others = await asked(store, noting("poll"), noting("result"))
        urgent = await asked(store, noting("command"), noting("reply"), urgent=True)
    await asyncio.gather(*others, *urgent)
    assert order == ["command", "reply", "poll", "result"]


@on_sqlite
async def test_urgent_work_is_committed_before_anything_else_begins(unhurried: Store) -> None:
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
async def test_a_flood_of_urgent_work_does_not_starve_the_rest(store: Store) -> None:
    order: list[bool] = []

    def noting(*, urgent: bool) -> Work:
        async def note(tx: Transaction) -> None:
            order.append(urgent)

        return note

    async with held(store):
        other = await asked(store, noting(urgent=False))
        flood = await asked(store, *[noting(urgent=True)] * (2 * sqlite_thread.MOST_IN_A_ROW), urgent=True)
    await asyncio.gather(*other, *flood)
    assert order.index(False) == sqlite_thread.MOST_IN_A_ROW


@on_sqlite
async def test_work_that_awaits_anything_else_is_refused(store: Store) -> None:
    """It would block the one thread, and with it the database."""

    async def waits(tx: Transaction) -> None:
        await tx.threads.add(a_thread())
        await asyncio.sleep(0)

    with pytest.raises(WorkSuspendedError):
        await store.transact(waits)
    await add(store, a_thread())


@on_sqlite
async def test_work_that_waits_too_long_fails_and_is_not_done_later(store: Store, scratch: Path) -> None:
    assert isinstance(store, SqlStore)
    impatient = SqlStore(store._database, store._clock, retry_for=0.05)
    async with held(store):
        with pytest.raises(StoreUnavailable, match="too busy"):
            await impatient.transact(adding("t1"))
    await add(store, a_thread("t2"))
    assert names(scratch / "pagehand.db") == ["t2"]


@on_sqlite
async def test_closing_finishes_waiting_work_first(store: Store, scratch: Path) -> None:
    async with held(store):
        tasks = await asked(store, adding("t1"))
        closing_it = asyncio.create_task(store.close())
        await asyncio.sleep(0)
    await closing_it
    assert await asyncio.gather(*tasks) == [True]
    assert names(scratch / "pagehand.db") == ["t1"]
    await add(store, a_thread("t2"))  # it reopens on demand


@on_sqlite
async def test_a_hanging_disk_does_not_block_shutdown(another_store: Opener) -> None:
    store = await another_store(closing=0.01)
    async with held(store):
        async with asyncio.timeout(5):
            await store.close()
    await add(store, a_thread())


@on_sqlite
async def test_a_database_that_cannot_be_opened_fails_waiting_work(store: Store, scratch: Path) -> None:
    await store.close()
    (scratch / "pagehand.db").rename(scratch / "elsewhere.db")
    (scratch / "pagehand.db").mkdir()
    results = await asyncio.gather(*(store.transact(adding(f"t{n}")) for n in range(3)), return_exceptions=True)
    assert all(isinstance(result, StoreError) for result in results)
    (scratch / "pagehand.db").rmdir()
    (scratch / "elsewhere.db").rename(scratch / "pagehand.db")
    await add(store, a_thread("t9"))


@on_postgres
async def test_urgent_work_gets_a_connection(store: Store) -> None:
    goes_on = asyncio.Event()
    await add(store, a_thread("t0"))
    recording_health = RecordingHealth(time.monotonic)

    async def at_work(tx: Transaction) -> None:
        await tx.threads.get("t0")
        await goes_on.wait()

    loops = await asked(store, *[at_work] * 12)
    try:
        async with asyncio.timeout(3):
            await store.transact(adding("t1"), urgent=True)
            await DatabaseProbe(store, recording_health, watching_jobs=False).probe()
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

    async def poll(tx: Transaction) -> None:
        order.append("poll")

    urgent = await asked(store, command, urgent=True)
    await begun.wait()
    other = await asked(store, poll)
    await store.transact(adding("t1"), urgent=True)
    goes_on.set()
    await asyncio.gather(*urgent, *other)
    assert order == ["command", "poll"]


@on_postgres
async def test_urgent_work_does_not_hold_up_the_rest_for_long(store: Store) -> None:
    goes_on = asyncio.Event()

    async def hangs(tx: Transaction) -> None:
        await goes_on.wait()

    urgent = await asked(store, hangs, urgent=True)
    try:
        async with asyncio.timeout(3):
            await store.transact(adding("t1"))
    finally:
        goes_on.set()
        await asyncio.gather(*urgent)


@on_postgres
async def test_an_open_connection_is_kept(store: Store) -> None:
    """Each new one costs the server a process, and its statements are prepared again."""
    everybody = asyncio.Barrier(CONNECTIONS)

    async def answering(tx: Transaction) -> int:
        await everybody.wait()
        return int((await tx.session.connection.exec_driver_sql("SELECT pg_backend_pid()")).scalar_one())

    async def all_at_once() -> set[int]:
        return set(await asyncio.gather(*(store.transact(answering, urgent=True) for _ in range(CONNECTIONS))))

    first = await all_at_once()
    assert len(first) == CONNECTIONS
    assert await all_at_once() == first
