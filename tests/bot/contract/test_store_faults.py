"""Databases that are locked, unreachable, full or deadlocked; cancelled work."""

import asyncio
import os
import signal
import sqlite3
import threading
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from support.databases import engine_for
from support.worlds.store_world import (
    CARD,
    Opener,
    StoreWorld,
    a_thread,
    on_postgres,
    on_sqlite,
)

from bot.errors import ConfigError, StoreUnavailable
from bot.queue.errors import StoreTimings
from bot.store.store import Transaction, open_store


async def cut(database: str) -> None:
    """Ends every other connection to the database, as a restart of the server does."""
    connection = await asyncpg.connect(database)
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()


@on_sqlite
async def test_every_transaction_takes_the_write_lock_at_its_start(store: StoreWorld, scratch: Path) -> None:
    file = scratch / "pagehand.db"
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)) as other:

        async def work(tx: Transaction) -> None:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")

        await store.transact(work)
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")


@on_sqlite
async def test_commits_are_flushed_to_disk(store: StoreWorld) -> None:
    async def pragmas(tx: Transaction) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [(await tx.session.execute(text(f"PRAGMA {name}"))).scalar() for name in names]

    assert await store.transact(pragmas) == ["wal", 2, 1]


@on_sqlite
async def test_a_lock_of_another_program_is_waited_for(store: StoreWorld, scratch: Path) -> None:
    with closing(sqlite3.connect(scratch / "pagehand.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = [asyncio.create_task(store.add(a_thread(f"t{n}"))) for n in range(3)]
        done, _ = await asyncio.wait(waiting, timeout=0.3)
        assert not done
        other.execute("COMMIT")
        await asyncio.gather(*waiting)


@pytest.mark.full
@on_sqlite
async def test_a_lasting_lock_is_explained(another_store: Opener, scratch: Path) -> None:
    store = await another_store(retry_for=0.2)
    with closing(sqlite3.connect(scratch / "pagehand.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        results = await asyncio.gather(*(store.transact(no_work) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [StoreUnavailable] * 3
        assert "locked by another program" in str(results[0])
        other.execute("COMMIT")
    assert await store.transact(no_work)


@on_postgres
async def test_connections_cut_while_idle_are_replaced(store: StoreWorld, database: str) -> None:
    await store.watched()
    await cut(database)
    assert len(await store.claim_polls()) == 1


@on_postgres
async def test_an_unresponsive_server_does_not_block_shutdown(
    another_store: Opener,
) -> None:
    """As if a firewall dropped all packets: closing a connection would take long."""
    store = await another_store(closing=0.1)
    pids: list[int] = []

    async def note(tx: Transaction) -> None:
        pids.append((await tx.session.execute(text("SELECT pg_backend_pid()"))).scalar_one())

    await store.transact(note)
    os.kill(pids[0], signal.SIGSTOP)
    try:
        async with asyncio.timeout(5):
            await store.close()
    finally:
        os.kill(pids[0], signal.SIGCONT)


@on_postgres
async def test_work_is_repeated_as_a_whole_after_a_cut_connection(store: StoreWorld, database: str) -> None:
    tries = 0

    async def work(tx: Transaction) -> None:
        nonlocal tries
        tries += 1
        assert await tx.threads.add(a_thread())
        if tries < 3:
            await cut(database)
        await tx.notices.add("t1", CARD)

    await store.transact(work)
    assert tries == 3
    assert await store.get_thread() == a_thread()


@pytest.mark.full
@on_postgres
async def test_stalled_transactions_lose_their_locks(store: StoreWorld, another_store: Opener) -> None:
    """Between preparing a statement and running it, the server does not count a connection as idle."""
    other = await another_store()

    async def stall(thread: str, *, within_a_statement: bool) -> None:
        await store.watched(thread)
        began, goes_on, tries = asyncio.Event(), asyncio.Event(), []

        async def stand_still(tx: Transaction) -> None:
            await tx.notices.add(thread, CARD)
            tries.append(tx.now)
            if within_a_statement:
                assert isinstance(tx.session.connection, AsyncConnection)
                driver: Any = (await tx.session.connection.get_raw_connection()).driver_connection
                await driver.prepare(f"SELECT {len(tries)}")
            began.set()
            await goes_on.wait()

        standing = asyncio.create_task(store.transact(stand_still))
        await began.wait()
        assert (await other.get_thread(thread)).id == thread
        assert not standing.done()
        goes_on.set()
        await standing
        assert len(tries) == 2

    await asyncio.gather(stall("t1", within_a_statement=False), stall("t2", within_a_statement=True))


@on_postgres
async def test_deadlocked_work_is_repeated(store: StoreWorld) -> None:
    await store.add(a_thread("t1"))
    await store.add(a_thread("t2"))
    both = asyncio.Barrier(2)
    tries = 0

    async def lock(first: str, second: str) -> None:
        met = False

        async def work(tx: Transaction) -> None:
            nonlocal met, tries
            tries += 1
            await tx.threads.get(first)
            if not met:
                met = True
                await both.wait()
            await tx.threads.get(second)

        await store.transact(work)

    await asyncio.gather(lock("t1", "t2"), lock("t2", "t1"))
    assert tries > 2  # three, or more if the machine is so slow that the database ends other waits too


@on_postgres
async def test_statements_have_a_timeout(database: str) -> None:
    """A migration gets more time: indexing a big table is slow."""
    engine = engine_for(database, statement_timeout=0.1)
    with pytest.raises(TimeoutError):
        async with engine.begin() as connection:
            await connection.exec_driver_sql("SELECT pg_sleep(60)")
    await engine.dispose()


async def test_cancelled_work_leaves_no_trace(store: StoreWorld, another_store: Opener) -> None:
    begun = asyncio.Event()

    async def work(tx: Transaction) -> None:
        await tx.threads.add(a_thread())
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(store.transact(work))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for usable in (store, await another_store()):
        assert await usable.transact(lambda tx: tx.threads.get("t1")) is None
    await store.add(a_thread())


@on_sqlite
async def test_cancelling_running_or_waiting_work_leaves_no_trace(store: StoreWorld) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    async def work(tx: Transaction) -> None:
        await tx.threads.add(a_thread())
        begun.set()
        goes_on.wait(10)

    running = asyncio.create_task(store.transact(work))
    await asyncio.to_thread(begun.wait, 10)
    waiting = asyncio.create_task(store.add(a_thread("t2")))
    await asyncio.sleep(0)
    for task in (running, waiting):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    goes_on.set()
    for name in ("t1", "t2"):
        assert await store.transact(lambda tx, name=name: tx.threads.get(name)) is None  # type: ignore[misc]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:planted-secret@127.0.0.1:1/pagehand",
        "postgres://ana:planted-secret@127.0.0.1:1/pagehand?sslmode=require&channel_binding=require",
        "postgresql://ana:planted-secret@127.0.0.1:port/pagehand",
        "postgresql://ana:planted-secret@127.0.0.1:1/pagehand?sslmode=perhaps",
        "mysql://ana:planted-secret@127.0.0.1/pagehand",
    ],
)
async def test_no_error_shows_the_password(url: str) -> None:
    with pytest.raises((StoreUnavailable, ConfigError)) as caught:
        await open_store(url, timings=StoreTimings(retry_for=0.1))
    assert "planted-secret" not in "".join(traceback.format_exception(caught.value))


async def no_work(tx: Transaction) -> float:
    return tx.now
