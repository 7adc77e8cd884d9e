"""Retention: deletes finished jobs and their texts after a time, and everything else that grows, a few at a time."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

from bot.errors import StoreError
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import NewNotice
from bot.scheduler.settings import SchedulerVariables
from bot.store.retention import OldRows
from bot.store.store import Store, UpkeepTransaction

logger = logging.getLogger(__name__)

SMALLEST_BATCH = 16
LARGEST_BATCH = 512
LONGEST_DELETION = 0.01
"""Seconds that one deletion may take, because people's requests may have to wait for it."""
PACE = 300.0
"""Rows a second, so that a million are deleted within the hour."""
HOUR = 3600.0
DAY = 24 * HOUR
HOME_DAYS = 30.0
"""A Home that nobody opens for this long is no longer updated."""
HELD_DAYS = 7.0
"""How long somebody can answer whether a reply is meant for the agent."""

_AGES = {
    OldRows.COUNTED: 2 * HOUR,  # they count towards the limit for an hour
    OldRows.DRAFTS: DAY,
    OldRows.HOMES: HOME_DAYS * DAY,
    OldRows.MESSAGE_VERSIONS: 8 * DAY,  # what is a week old can be read again, if nobody listened
    OldRows.SLACK_CALLS: HOUR,
}
Deletion = Callable[[int, UpkeepTransaction], Awaitable[int]]
"""Deletes (or otherwise settles) up to a number of rows; returns how many."""


def next_batch(size: int, took: float) -> int:
    """Returns how many rows the next transaction deletes, after deleting `size` rows took so many seconds.

    Sizes are doubled and halved only, so that there are few different statements to be prepared.
    """
    if took > LONGEST_DELETION:
        return max(size // 2, SMALLEST_BATCH)
    return min(size * 2, LARGEST_BATCH) if took < LONGEST_DELETION / 3 else size


def pause_after(size: int, took: float) -> float:
    """Returns for how many seconds to leave the database alone after a transaction that deleted `size` rows.

    That is four fifths of the time, or less if the pace needs it, but at least half.
    """
    return min(max(size / PACE - took, took), 4 * took)


@dataclass(eq=False)
class RetentionSweeper:
    """Keeps finished jobs for some days after their last change, and the audit trail for as many. `sweep_every` is in
    seconds; `monotonic` is the clock that measures transactions.
    """

    store: Store
    variables: SchedulerVariables = field(default_factory=SchedulerVariables)
    _: KW_ONLY
    sweep_every: float = 3600.0
    monotonic: Callable[[], float] = time.monotonic

    async def run(self) -> None:
        """Sweeps forever."""
        while True:
            try:
                removed = await self.sweep()
            except StoreError as error:
                logger.warning("old jobs cannot be deleted now, the next try is in an hour: %s", error)
            else:
                if removed:
                    logger.info("%d finished jobs older than %g days were deleted", removed, self.variables.keep_days)
            await asyncio.sleep(self.sweep_every)

    async def sweep(self) -> int:
        """Deletes everything that is old; returns how many jobs."""
        kept = self.variables.keep_days * DAY
        removed = await self._in_batches(
            lambda limit, tx: tx.retention.delete_finished(before=tx.now - kept, limit=limit)
        )
        await self._in_batches(lambda limit, tx: tx.retention.delete_texts(before=tx.now - kept, limit=limit))
        for kind, age in {**_AGES, OldRows.AUDIT: kept}.items():
            await self._in_batches(partial(_delete_old, kind, age))
        await self._in_batches(_delete_held)
        # What processes of an earlier version recorded during an upgrade; at each start, too.
        await self._in_batches(lambda limit, tx: tx.pull_requests.follow_unknown(since=tx.now - DAY, limit=limit))
        await self._in_batches(lambda limit, tx: tx.retention.delete_channel_ids(before=tx.now - kept, limit=limit))
        return removed

    async def _in_batches(self, delete: Deletion) -> int:
        removed, size = 0, SMALLEST_BATCH
        while True:
            began = self.monotonic()
            # The commit's time, and that in a queue, do not grow with the batch.
            batch, deleting = await self.store.transact(partial(self._timed, delete, size))
            removed += batch
            if batch < size:
                return removed
            await asyncio.sleep(pause_after(size, self.monotonic() - began))
            size = next_batch(size, deleting)

    async def _timed(self, delete: Deletion, size: int, tx: UpkeepTransaction) -> tuple[int, float]:
        began = self.monotonic()
        return await delete(size, tx), self.monotonic() - began


async def _delete_old(kind: OldRows, age: float, limit: int, tx: UpkeepTransaction) -> int:
    return await tx.retention.delete_old(kind, before=tx.now - age, limit=limit)


async def _delete_held(limit: int, tx: UpkeepTransaction) -> int:
    held = await tx.retention.delete_held(before=tx.now - HELD_DAYS * DAY, limit=limit)
    for thread_id, person_id in sorted(set(held)):
        told = ActionAnswered(person_id, ActionAnswer.HELD_EXPIRED)
        await tx.notices.add(thread_id, NewNotice(ActionAnswered.key_of_expiry(person_id, tx.now), told))
    return len(held)
