"""Caches Slack's answers for a while. Concurrent requests for the same key share one call."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from bot.runtime.recent import RecentDict

T = TypeVar("T")

AT_A_TIME = 20
"""Maximum concurrent fetches of one kind, out of the process's hundred connections."""


@dataclass
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    waiting: int = 0


_MOST_KEPT = 2_000


class ExpiringCache(Generic[T]):
    """Caches each value for `seconds` from the time of its request. Failures are not cached. `monotonic` is a clock."""

    def __init__(self, *, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._kept = RecentDict[str, tuple[T, float]](_MOST_KEPT)
        self._flights: dict[str, _Flight[T]] = {}
        self._turns = asyncio.Semaphore(AT_A_TIME)

    def is_fresh(self, key: str) -> bool:
        """Returns whether the value of a key is known."""
        return key in self._kept and self._monotonic() < self._kept[key][1]

    def known(self, key: str) -> T | None:
        """Returns the value of a key, however old it is; None if there is none."""
        return self._kept[key][0] if key in self._kept else None

    async def get(self, key: str, fetch: Callable[[str], Awaitable[T]]) -> T:
        """Returns the cached value of a key, or else that of `fetch`, or raises its error. It runs once for all who
        wait for the key, and is cancelled when the last of them stops waiting.
        """
        if self.is_fresh(key):
            return self._kept[key][0]
        flight = self._flights.get(key)
        if flight is None:
            task = asyncio.create_task(self._fetched(key, fetch), name=f"look-up of {key}")
            flight = self._flights[key] = _Flight(task)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                flight.task.cancel()  # has no effect if it has ended
                del self._flights[key]

    async def _fetched(self, key: str, fetch: Callable[[str], Awaitable[T]]) -> T:
        async with self._turns:
            until = self._monotonic() + self._seconds
            value = await fetch(key)
            self._kept[key] = value, until
            return value
