"""The store: opens a database and runs transactions in it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bot.clock import SteadyClock
from bot.errors import StoreUnavailable
from bot.ports import Clock, Store, Transaction
from bot.store.claims import Claims
from bot.store.engine import engine_for
from bot.store.faults import patiently
from bot.store.removal import Removal
from bot.store.results import Results
from bot.store.schema import require_current
from bot.store.session import start_postgres
from bot.store.tables import notices, requests, watches

T = TypeVar("T")

log = logging.getLogger(__name__)

_FAR = 90.0
"""Seconds ahead of now; what Pagehand itself makes wait, or leases, is due before. A time beyond is most likely from
before a clock was set back; where somebody did ask to wait for longer, asking again early does no harm.
"""
_STEP = 30.0
"""Seconds by which the database's clock may fall behind ours before it counts as set back."""


class SqlTransaction(Results, Claims, Removal):
    """ports.Transaction."""


async def open_store(url: str, *, clock: Clock | None = None) -> Store:
    """Opens a database whose schema is current.

    Args:
        url: See `engine_for`.
        clock: Tells the time; without one it is the database's own on PostgreSQL, and a steady one on SQLite.

    Raises:
        ConfigError: The URL names no database.
        SchemaMismatch: Its tables are missing, older or newer.
        StoreError: It can't be opened.
    """
    engine = engine_for(url)
    if clock is None and engine.dialect.name == "sqlite":
        clock = SteadyClock()
    store = SqlStore(engine, clock)
    try:
        await store.check()
    except BaseException:
        await store.close()
        raise
    return store


class SqlStore:
    """ports.Store over one engine."""

    def __init__(self, engine: AsyncEngine, clock: Clock | None) -> None:
        self._engine = engine
        self._clock = clock
        self._on_sqlite = engine.dialect.name == "sqlite"
        self._turn = asyncio.Lock()
        self._steady = SteadyClock()
        self._ahead: float | None = None
        self._set_back = False

    async def check(self) -> None:
        """Refuses a schema that is not current; repairs times that a clock set back left in the far future."""

        async def once(end: float) -> None:
            async with self._begin(end) as connection:
                await connection.run_sync(require_current)
                await self._bring_near(connection)

        await patiently(once)

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in one transaction (see the port)."""
        if self._set_back:
            await self._follow_clock()

        async def once(end: float) -> T:
            async with self._begin(end) as connection:
                return await work(SqlTransaction(connection, await self._now(connection)))

        return await patiently(once)

    async def close(self) -> None:
        """Gives back every connection."""
        await self._engine.dispose()

    @asynccontextmanager
    async def _begin(self, end: float) -> AsyncIterator[AsyncConnection]:
        if not self._on_sqlite:
            async with self._engine.begin() as connection:
                yield connection
            return
        # SQLite has one writer: tasks queue here, in order, instead of trying their luck with its lock.
        try:
            async with asyncio.timeout_at(end):
                await self._turn.acquire()
        except TimeoutError:
            raise StoreUnavailable("The database is too busy.") from None
        try:
            async with self._engine.begin() as connection:
                yield connection
        finally:
            self._turn.release()

    async def _now(self, connection: AsyncConnection) -> float:
        database_time = None if self._on_sqlite else await start_postgres(connection)
        if self._clock is not None:
            return self._clock.now()
        if database_time is None:
            raise AssertionError("a SQLite store has a clock")
        self._compare(database_time)
        return database_time

    def _compare(self, database_time: float) -> None:
        """Notices when the database's clock is set back, which would put off for as long all that waits."""
        ahead = database_time - self._steady.monotonic()
        if self._ahead is not None and ahead < self._ahead - _STEP:
            log.warning("The database's clock was set back by %.0f s.", self._ahead - ahead)
            self._set_back = True
        if self._ahead is None or self._set_back or ahead > self._ahead:
            self._ahead = ahead

    async def _follow_clock(self) -> None:
        async def once(end: float) -> None:
            async with self._begin(end) as connection:
                await self._bring_near(connection)

        self._set_back = False
        try:
            await patiently(once)
        except BaseException:
            self._set_back = True
            raise

    async def _bring_near(self, connection: AsyncConnection) -> None:
        """Repairs times that a clock set back left in the far future."""
        now = await self._now(connection)
        # SQLite's only process has just started, so that nothing is leased; elsewhere others are at work.
        lease_end = now if self._on_sqlite else now + _FAR
        for table in (watches, requests, notices):
            for column, latest in ((table.c.due_at, now), (table.c.claimed_until, lease_end)):
                await connection.execute(update(table).where(column > now + _FAR).values({column: latest}))
