"""Retention: deletes finished jobs and their texts after a time, a few at a time."""

import asyncio
import logging
from typing import Protocol

from bot.errors import StoreError
from bot.ports import HasNow, HasRetention, Store

logger = logging.getLogger(__name__)

BATCH_SIZE = 200
"""Threads deleted in one transaction, so that nothing else waits long."""
PAUSE = 0.5
SWEEP_EVERY = 3600.0
DAY = 24 * 3600.0


class RetentionTransaction(HasNow, HasRetention, Protocol):
    """What deleting old jobs touches."""


class Retention:
    """Keeps finished jobs for `days` days after their last change.

    Args:
        store: Where they are.
        days: How long they are kept.
        batch_size: How many one transaction deletes.
        pause: Seconds between two transactions.
        sweep_every: Seconds between two looks for what is old.
    """

    def __init__(
        self,
        store: Store,
        *,
        days: float,
        batch_size: int = BATCH_SIZE,
        pause: float = PAUSE,
        sweep_every: float = SWEEP_EVERY,
    ) -> None:
        self._store = store
        self._days = days
        self._batch_size = batch_size
        self._pause = pause
        self._sweep_every = sweep_every

    async def run(self) -> None:
        """Sweeps, for ever."""
        while True:
            try:
                removed = await self.sweep()
            except StoreError as error:
                logger.warning("old jobs cannot be deleted now, the next try is in an hour: %s", error)
            else:
                if removed:
                    logger.info("%d finished jobs older than %g days were deleted", removed, self._days)
            await asyncio.sleep(self._sweep_every)

    async def sweep(self) -> int:
        """Deletes all that is old by now; returns how many jobs."""
        removed = 0
        while True:
            batch = await self._store.transact(self._remove_batch)
            removed += batch
            if batch < self._batch_size:
                return removed
            await asyncio.sleep(self._pause)

    async def _remove_batch(self, tx: RetentionTransaction) -> int:
        return await tx.retention.delete_finished(before=tx.now - self._days * DAY, limit=self._batch_size)
