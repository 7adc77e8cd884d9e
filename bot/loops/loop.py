"""The frame of the three loops: take what is due, work on it side by side, wait to be woken."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from bot.errors import StoreError, StoreUnavailable
from bot.ports import Clock, Store, Transaction

logger = logging.getLogger(__name__)
Item = TypeVar("Item")

RECORD_AGAIN = 1.0
"""Seconds before a result that could not be recorded is recorded again."""
FORGOTTEN_AFTER = 120.0
"""Seconds without a failure after which trouble is over, even if nothing has gone well since: what failed may be
settled, or done by another process. Longer than any retry waits.
"""


@dataclass(frozen=True)
class Terms:
    """The terms on which a loop works; times are in seconds.

    `owner` is this process's name, unique to its start; `lease` how long the store keeps others away from what was
    taken; `call_limit` the most that one remote call takes, shorter than `lease`; `tick` how long to wait when there is
    nothing to do and nobody calls `wake`. `recorded` is called when there may be work for other loops.
    """

    owner: str
    clock: Clock
    lease: float
    call_limit: float
    recorded: Callable[[], None]
    tick: float = 0.5


class Loop(ABC, Generic[Item]):
    """Takes work as it falls due, at most `at_once` pieces at a time."""

    def __init__(self, store: Store, terms: Terms, *, at_once: int) -> None:
        self._store = store
        self._terms = terms
        self._owner = terms.owner
        self._lease = terms.lease
        self._at_once = at_once
        self._woken = asyncio.Event()
        self._stopping = False
        self._running: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.failing_since: float | None = None
        """Since when the loop gets nowhere, in seconds on the monotonic clock; None while all is well."""
        self.failing_why: object = ""
        self._forget_at = 0.0
        self._outage_logged = False

    @abstractmethod
    async def take(self, limit: int) -> Sequence[Item]:
        """Claims at most `limit` pieces of work."""

    @abstractmethod
    async def work(self, item: Item, taken_at: float) -> None:
        """Does one piece. `taken_at` is the monotonic time just before it was claimed."""

    def wake(self) -> None:
        """There may be work now."""
        self._woken.set()

    async def run(self) -> None:
        """Works until `stop`."""
        self._running = asyncio.current_task()
        while not self._stopping:
            self._woken.clear()
            free = self._at_once - len(self._tasks)
            found = await self._take(free) if free else 0
            if found < free or not free:
                await self._wait()

    async def stop(self, patience: float) -> None:
        """Takes nothing more, and gives what is under way `patience` seconds to end; the rest is cancelled."""
        self._stopping = True
        self.wake()
        end = asyncio.get_running_loop().time() + patience
        if self._running is not None:  # what it is just taking is under way, too
            await asyncio.wait({self._running}, timeout=patience)
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=max(end - asyncio.get_running_loop().time(), 0.0))
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def in_time(self, taken_at: float) -> bool:
        """Whether a remote call still ends before others may take this over: after a long pause it would not."""
        return self._now() + self._terms.call_limit <= taken_at + self._lease

    async def record(self, work: Callable[[Transaction], Awaitable[None]]) -> None:
        """Records what a remote call did, however long the store is away: it must be neither forgotten nor repeated."""
        while True:
            try:
                await self._store.transact(work)
                break
            except StoreUnavailable as error:
                self.went_wrong(error)
                await asyncio.sleep(RECORD_AGAIN)
        self._terms.recorded()

    def went_well(self) -> None:
        """Notes that the loop gets somewhere, and logs the recovery."""
        if self._outage_logged:
            logger.warning("%s: works again after %.0f s", type(self).__name__, self.failing_for())
        self.failing_since = None
        self.failing_why = ""
        self._outage_logged = False

    def went_wrong(self, why: object, *, one_piece: bool = False, again_in: float | None = None) -> None:
        """Notes that the loop gets nowhere; only the first failure is logged. `one_piece`: it may be this piece of work
        alone that fails, so it counts for the health, but is no outage to log. `again_in`: seconds that others ask to
        wait.
        """
        if self.failing_since is None or self._forgotten():
            self.failing_since, self._outage_logged = self._now(), False
        self.failing_why, self._forget_at = why, self._now() + FORGOTTEN_AFTER + (again_in or 0.0)
        if not one_piece and not self._outage_logged:
            self._outage_logged = True
            logger.error("%s: can't work, and goes on trying: %s", type(self).__name__, why)

    async def _take(self, limit: int) -> int:
        taken_at = self._now()
        try:
            items = await self.take(limit)
        except StoreError as error:
            self.went_wrong(error)
            return 0
        except Exception as fault:
            # A fault of ours must not end the loop: nobody would notice, and nothing would be done any more.
            logger.exception("%s: can't take work", type(self).__name__)
            self.went_wrong(type(fault).__name__)
            return 0
        if isinstance(self.failing_why, StoreError):
            self.went_well()
        for item in items:
            task = asyncio.create_task(self._work(item, taken_at))
            self._tasks.add(task)
            task.add_done_callback(self._done)
        return len(items)

    async def _work(self, item: Item, taken_at: float) -> None:
        try:
            await self.work(item, taken_at)
        except StoreError as error:
            self.went_wrong(error)
        except Exception:
            # A fault of ours in one piece must not stop the others; its lease runs out, and it is tried again.
            logger.exception("%s: a piece of work failed", type(self).__name__)

    def failing_for(self) -> float:
        """For how many seconds the loop has got nowhere."""
        return 0.0 if self.failing_since is None or self._forgotten() else self._now() - self.failing_since

    def _forgotten(self) -> bool:
        return self._now() > self._forget_at

    def _now(self) -> float:
        return self._terms.clock.monotonic()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.wake()

    async def _wait(self) -> None:
        try:
            await asyncio.wait_for(self._woken.wait(), self._terms.tick)
        except TimeoutError:
            return
