"""Remembers what Slack told for a while, so that it is asked about the same thing once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_MOST_KEPT = 2_000


class ExpiringCache(Generic[T]):
    """Keeps each value for so many `seconds`; what could not be fetched is not kept. `monotonic` tells the time."""

    def __init__(self, *, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._kept: OrderedDict[str, tuple[T, float]] = OrderedDict()
        self._lock = asyncio.Lock()

    async def get(self, key: str, fetch: Callable[[str], Awaitable[T]]) -> T:
        """Returns the value of a key, by `fetch` where it is not known: one at a time, and once for all who wait."""
        async with self._lock:
            if key not in self._kept or self._kept[key][1] <= self._monotonic():
                self._kept[key] = (await fetch(key), self._monotonic() + self._seconds)
                self._kept.move_to_end(key)
                while len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
            return self._kept[key][0]
