"""Waits for conditions, checking them after each change instead of polling."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


class ChangeSignal:
    """Wakes those who wait for a condition after each change: in the workspace, of a call, of a delivery."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()

    def notify(self) -> None:
        for event in self._waiting:
            event.set()

    async def wait_for(
        self,
        predicate: Callable[[], Found],
        timeout: float = 30.0,  # noqa: ASYNC109 - the word of asyncio's own wait_for
        *,
        what: str = "the condition",
    ) -> Found:
        """Waits until the predicate returns a true value, and returns it.

        Args:
            predicate: Called after every change; it must be quick and change nothing.
            timeout: Seconds.
            what: Names the condition in the error.

        Raises:
            TimeoutError: It did not become true in time.
        """
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            async with asyncio.timeout(timeout):
                while not (found := predicate()):
                    event.clear()
                    await event.wait()
                return found
        except TimeoutError:
            raise TimeoutError(f"{what} was not met within {timeout} s") from None
        finally:
            self._waiting.discard(event)
