"""Waiting until something has become true, woken by changes instead of looking again and again."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


class Watching:
    """Wakes those who wait for a condition whenever anything has changed."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()

    def changed(self) -> None:
        for event in self._waiting:
            event.set()

    async def wait_for(self, predicate: Callable[[], Found], seconds: float, what: str = "the condition") -> Found:
        """Return the predicate's value as soon as it is true.

        Raises:
            TimeoutError: It was not within the time.
        """
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            async with asyncio.timeout(seconds):
                while not (found := predicate()):
                    event.clear()
                    await event.wait()
                return found
        except TimeoutError:
            raise TimeoutError(f"{what} was not met within {seconds} s") from None
        finally:
            self._waiting.discard(event)
