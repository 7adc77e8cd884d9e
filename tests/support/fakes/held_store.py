"""A store in which transactions block, as while a database does not answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bot.store.store import Store, Transaction

T = TypeVar("T")


class HeldStore:
    """Lets `free` transactions through and holds those that follow until `release`.

    `reached` is set once one is held; `cancelled` counts those that were cancelled while held.
    """

    def __init__(self, store: Store, *, free: int = 0) -> None:
        self.reached = asyncio.Event()
        self.cancelled = 0
        self._store = store
        self._free = free
        self._released = asyncio.Event()

    def release(self) -> None:
        """Lets everything through from now on."""
        self._released.set()

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, urgent: bool = False) -> T:
        if self._free > 0:
            self._free -= 1
        else:
            await self._hold()
        return await self._store.transact(work, urgent=urgent)

    async def _hold(self) -> None:
        self.reached.set()
        try:
            await self._released.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def close(self) -> None:
        await self._store.close()
