"""Retention: deletes finished jobs and their texts after a time, a few at a time."""

import asyncio
import logging

from bot.errors import StoreError
from bot.ports import Store, Transaction

logger = logging.getLogger(__name__)

STEP = 200
"""Threads a transaction, so that nothing else waits long."""
PAUSE = 0.5
LOOK_EVERY = 3600.0
DAY = 24 * 3600.0


class Retention:
    """Keeps finished jobs for `days` days after their last change."""

    def __init__(self, store: Store, *, days: float) -> None:
        self._store = store
        self._days = days

    async def run(self) -> None:
        """Looks once an hour, for ever."""
        while True:
            try:
                removed = await self.sweep()
            except StoreError as error:
                logger.warning("old jobs can't be deleted now, the next try is in an hour: %s", error)
            else:
                if removed:
                    logger.info("%d finished jobs older than %g days were deleted", removed, self._days)
            await asyncio.sleep(LOOK_EVERY)

    async def sweep(self) -> int:
        """Deletes all that is old by now; returns how many jobs."""
        removed = 0
        while True:
            step = await self._store.transact(self._step)
            removed += step
            if step < STEP:
                return removed
            await asyncio.sleep(PAUSE)

    async def _step(self, tx: Transaction) -> int:
        return await tx.remove_finished(before=tx.now - self._days * DAY, limit=STEP)
