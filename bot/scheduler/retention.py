"""Retention: deletes finished jobs and their texts after a time, and everything else that grows, a few at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from bot.domain.notices import keys
from bot.domain.notices.messages import ActionAnswer, ActionAnswered, NewNotice
from bot.domain.requests.request import RequestKind
from bot.errors import StoreError
from bot.ports.transaction import Store, UpkeepTransaction
from bot.ports.upkeep_store import OldRows

logger = logging.getLogger(__name__)

BATCH_SIZE = 20
"""Threads deleted in one transaction, which takes some milliseconds: nothing that people wait for is delayed for
longer.
"""
PAUSE = 0.1
SWEEP_EVERY = 3600.0
HOUR = 3600.0
DAY = 24 * HOUR
DRAFT_DAYS = 1.0
HOME_DAYS = 30.0
"""A Home that nobody opens for this long is no longer updated."""
COUNTED_HOURS = 2.0
"""Requests count towards the limit for an hour."""
MINUTE = 60.0
VERSION_MINUTES = 15.0
"""Slack repeats what was not acknowledged for six minutes, so an older version of a message can come that late."""
HELD_DAYS = 7.0
"""How long somebody can answer whether a reply is meant for the agent."""


_AGES = {
    OldRows.COUNTED: COUNTED_HOURS * HOUR,
    OldRows.DRAFTS: DRAFT_DAYS * DAY,
    OldRows.HOMES: HOME_DAYS * DAY,
    OldRows.MESSAGE_VERSIONS: VERSION_MINUTES * MINUTE,
    OldRows.SLACK_CALLS: HOUR,
}
Deletion = Callable[[UpkeepTransaction], Awaitable[int]]


class RetentionSweeper:
    """Keeps finished jobs for `days` days after their last change, and the audit trail for as many.

    Args:
        store: The store.
        days: How long finished jobs are kept.
        batch_size: How many rows of one kind one transaction deletes.
        pause: Seconds between two transactions.
        sweep_every: Seconds between two sweeps.
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
        self._ages = {**_AGES, OldRows.AUDIT: days * DAY}

    async def run(self) -> None:
        """Sweeps forever."""
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
        """Deletes everything that is old; returns how many jobs."""
        removed = await self._in_batches(self._delete_jobs)
        for kind, age in self._ages.items():
            await self._in_batches(partial(self._delete_old, kind, age))
        for delete in (self._delete_held, self._delete_channel_ids):
            await self._in_batches(delete)
        return removed

    async def _in_batches(self, delete: Deletion) -> int:
        removed = 0
        while True:
            batch = await self._store.transact(delete)
            removed += batch
            if batch < self._batch_size:
                return removed
            await asyncio.sleep(self._pause)

    async def _delete_jobs(self, tx: UpkeepTransaction) -> int:
        return await tx.retention.delete_finished(before=tx.now - self._days * DAY, limit=self._batch_size)

    async def _delete_old(self, kind: OldRows, age: float, tx: UpkeepTransaction) -> int:
        return await tx.retention.delete_old(kind, before=tx.now - age, limit=self._batch_size)

    async def _delete_held(self, tx: UpkeepTransaction) -> int:
        held = await tx.retention.delete_held(before=tx.now - HELD_DAYS * DAY, limit=self._batch_size)
        for thread_id, person_id in sorted(
            {(each.thread_id, each.person_id) for each in held if each.kind is RequestKind.FOLLOW_UP}
        ):
            told = ActionAnswered(person_id, ActionAnswer.HELD_EXPIRED)
            await tx.notices.add(thread_id, NewNotice(keys.reply_expired(person_id, tx.now), told))
        return len(held)

    async def _delete_channel_ids(self, tx: UpkeepTransaction) -> int:
        return await tx.retention.delete_channel_ids(before=tx.now - self._days * DAY, limit=self._batch_size)
