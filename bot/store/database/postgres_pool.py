"""A pool of PostgreSQL connections; some are reserved for work that people wait for."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bot.errors import StoreUnavailable
from bot.store.database.timings import StoreTimings

T = TypeVar("T")

CONNECTIONS = 10
"""The most connections that one process opens. They are kept: a new one costs as much as many transactions, and has no
prepared statements yet.
"""
APPLICATION_NAME = "pagehand"
"""The name under which the server lists our connections."""
RESERVED = 3
"""Connections that only urgent work may use."""


class PostgresPool:
    """Runs units of work in transactions, each on a connection of the pool."""

    def __init__(self, engine: AsyncEngine, timings: StoreTimings) -> None:
        self._engine = engine
        self._timings = timings
        self._turns = asyncio.Semaphore(CONNECTIONS - RESERVED)
        self._urgent = 0
        self._nothing_urgent = asyncio.Event()
        self._nothing_urgent.set()

    async def run(self, work: Callable[[AsyncConnection], Awaitable[T]], *, urgent: bool, end: float) -> T:
        """Runs `work` in a transaction and commits it (see SqliteThread.run)."""
        if urgent:
            return await self._urgently(work)
        try:
            async with asyncio.timeout_at(end):
                await self._turns.acquire()
        except TimeoutError:
            raise StoreUnavailable("The database is too busy.") from None
        try:
            if self._urgent:
                await self._give_way()
            return await self._transaction(work)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Closes every connection, within bounded time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timings.closing):
                await self._engine.dispose()

    async def _urgently(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        self._urgent += 1
        self._nothing_urgent.clear()
        try:
            return await self._transaction(work)
        finally:
            self._urgent -= 1
            if not self._urgent:
                self._nothing_urgent.set()

    async def _give_way(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timings.yielding):
                await self._nothing_urgent.wait()

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._engine.begin() as connection:
            return await work(connection)
