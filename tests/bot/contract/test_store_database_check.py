"""The store's report on its own condition."""

from functools import partial

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import JOB, Sql, a_thread, add

from bot.domain.threads.thread import ThreadState
from bot.runtime.health.outages import RecordingHealth
from bot.scheduler.database_check import LONG_OPEN, DatabaseProbe
from bot.store.condition import LongOpenJobs
from bot.store.schema.tables import metadata
from bot.store.store import Store, Transaction


async def test_a_probe_leaves_no_trace(store: Store, sql: Sql) -> None:
    for _ in range(3):
        await store.transact(lambda tx: tx.condition.try_write())
    for table in metadata.tables:
        assert await sql(f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608 - our own names


async def long_open(store: Store, *, limit: int = 100) -> LongOpenJobs:
    return await store.transact(lambda tx: tx.condition.long_open(before=tx.now - LONG_OPEN, limit=limit))


async def begin(store: Store, name: str, *, poll_in: float | None = 0.0) -> None:
    """Records a job that is polled from now on, unless it has ended."""
    await add(store, a_thread(name))
    await store.transact(partial(_save, name, poll_in))


async def _save(name: str, poll_in: float | None, tx: Transaction) -> None:
    await tx.threads.save_state(name, ThreadState(JOB), poll_in=poll_in)


async def test_jobs_unchanged_for_hours_are_counted(store: Store, clock: FakeClock) -> None:
    for name in ("oldest", "old"):
        await begin(store, name)
        clock.advance(1800)
    await begin(store, "ended", poll_in=None)
    await add(store, a_thread("never started"))
    clock.advance(LONG_OPEN)
    await begin(store, "new")
    assert await long_open(store) == LongOpenJobs(2, LONG_OPEN + 3600)
    assert (await long_open(store, limit=1)).count <= 1
    await store.transact(partial(_save, "oldest", None))
    assert await long_open(store) == LongOpenJobs(1, LONG_OPEN + 1800)


async def test_an_empty_database_has_no_long_open_jobs(store: Store) -> None:
    assert await long_open(store) == LongOpenJobs(0, 0.0)


async def test_long_open_jobs_are_warned_of_once(
    store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    check = DatabaseProbe(store, RecordingHealth(clock.monotonic), watching_jobs=True)
    await begin(store, "first")
    await check.count_long_open()
    assert check.warning() == ""
    clock.advance(LONG_OPEN + 3600)
    await check.count_long_open()
    await check.count_long_open()
    assert check.warning().startswith("1 job has been open for over 4 hours without a change, the oldest for 5 hours.")
    await begin(store, "second")
    clock.advance(LONG_OPEN + 3600)
    await check.count_long_open()
    assert [record.getMessage().partition(" been")[0] for record in caplog.records] == ["1 job has", "2 jobs have"]
    for name in ("first", "second"):
        await store.transact(partial(_save, name, None))
    await check.count_long_open()
    assert check.warning() == ""
