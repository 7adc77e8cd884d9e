"""Remembers what Slack told for a while, so that it is asked about the same thing once."""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from bot.slack.sending.single_flight import SingleFlight

T = TypeVar("T")

_MOST_KEPT = 2_000


class ExpiringCache(Generic[T]):
    """Keeps each value for so many `seconds` from when it was asked for; what could not be fetched is not kept.
    `monotonic` tells the time.
    """

    def __init__(self, *, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._kept: OrderedDict[str, tuple[T, float]] = OrderedDict()
        self._flights = SingleFlight[T]()

    def __len__(self) -> int:
        """How many values are kept."""
        return len(self._kept)

    def is_fresh(self, key: str) -> bool:
        """Returns whether the value of a key is known."""
        return key in self._kept and self._monotonic() < self._kept[key][1]

    async def get(self, key: str, fetch: Callable[[str], Awaitable[T]]) -> T:
        """Returns the value of a key: at once where it is known, else by `fetch`, once for all who wait."""
        if self.is_fresh(key):
            return self._kept[key][0]

        async def fetch_and_keep(key: str) -> T:
            until = self._monotonic() + self._seconds
            value = await fetch(key)
            self._keep(key, value, until)
            return value

        return await self._flights.get(key, fetch_and_keep)

    def _keep(self, key: str, value: T, until: float) -> None:
        self._kept[key] = (value, until)
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
