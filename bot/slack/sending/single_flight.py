"""One fetch for all who want the same thing at the same time, and several side by side for those who want others."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

AT_A_TIME = 20
"""Fetches under way: so many connections of the process's hundred a kind of look-up takes at most."""


@dataclass
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    waiting: int = 0


class SingleFlight(Generic[T]):
    """Whoever wants what is being fetched waits for that. A fetch ends with the last who waits for it: nothing goes on
    for nobody.
    """

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}
        self._turns = asyncio.Semaphore(AT_A_TIME)

    def __len__(self) -> int:
        """How many are under way, or wait for their turn."""
        return len(self._flights)

    async def get(self, key: str, fetch: Callable[[str], Awaitable[T]]) -> T:
        """Returns what `fetch` comes to, or raises what it raises, as everybody does who waits for this key."""
        flight = self._flights.get(key)
        if flight is None:
            task = asyncio.create_task(self._in_turn(key, fetch), name=f"look-up of {key}")
            flight = self._flights[key] = _Flight(task)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                self._end(key, flight)

    async def _in_turn(self, key: str, fetch: Callable[[str], Awaitable[T]]) -> T:
        async with self._turns:
            return await fetch(key)

    def _end(self, key: str, flight: _Flight[T]) -> None:
        flight.task.cancel()  # no matter where it has ended
        if self._flights.get(key) is flight:
            del self._flights[key]
