"""The store: opens a database and runs transactions in it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from sqlalchemy import func, or_, update
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

_LONGEST_LEASE = 15 * 60
_LONGEST_WAIT = {watches: 15 * 60, requests: 3600, notices: 3600}
"""Seconds ahead of now; a time beyond was written before the machine's clock was set back."""


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

    async def check(self) -> None:
        """Refuses a schema that is not current; repairs times that a clock set back left in the far future."""

        async def once(end: float) -> None:
            async with self._begin(end) as connection:
                await connection.run_sync(require_current)
                if self._on_sqlite:
                    await _bring_near(connection, await self._now(connection))

        await patiently(once)

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in one transaction (see the port)."""

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
        return database_time


async def _bring_near(connection: AsyncConnection, now: float) -> None:
    for table, longest in _LONGEST_WAIT.items():
        far = or_(table.c.due_at > now + longest, table.c.claimed_until > now + _LONGEST_LEASE)
        nearer = {column: func.min(table.c[column], now) for column in ("due_at", "claimed_until")}
        await connection.execute(update(table).where(far).values(nearer))
