"""Detects problems that would go unnoticed while idle: an unwritable database, and jobs open for hours."""

import asyncio
import logging

from bot.domain.findings import LastTime
from bot.errors import StoreError, StoreUnavailable
from bot.runtime.health import RecordingHealth
from bot.store.condition import LongOpenJobs
from bot.store.store import Store, Transaction

logger = logging.getLogger(__name__)

PROBE_EVERY = 20.0
"""Seconds between two probes; each writes a few kilobytes."""
PROBE_RETRY = 5.0
"""The same, while the last one failed."""
SLOW_WRITE = 5.0
"""Seconds that a write may take. Slack waits for three; a busy machine may stall for a moment."""
OPEN_JOBS_EVERY = 600.0
"""Seconds between two searches for long-open jobs."""
LONG_OPEN = 4 * 3600.0
"""Seconds without a change after which an open job is worth a log line."""
MAX_OPEN_JOBS = 10_000
"""Open jobs that one search goes through."""


class DatabaseProbe:
    """Writes to the database regularly, and looks for jobs that have been open for long.

    Args:
        store: The store to check.
        recording_health: Gets the results of the writes.
        happened: The kinds of events since the last write, which records them.
        watching_jobs: Whether to look for long-open jobs; only processes that poll do.
        probe_every: Seconds between two writes.
        probe_retry: The same, while the last one failed.
    """

    def __init__(
        self,
        store: Store,
        recording_health: RecordingHealth,
        *,
        watching_jobs: bool,
        happened: set[LastTime] | None = None,
        probe_every: float = PROBE_EVERY,
        probe_retry: float = PROBE_RETRY,
    ) -> None:
        self._store = store
        self._recording_health = recording_health
        self._watching_jobs = watching_jobs
        self._happened: set[LastTime] = set() if happened is None else happened
        self._probe_every = probe_every
        self._probe_retry = probe_retry
        self._long_open = LongOpenJobs(0, 0.0)

    async def run(self) -> None:
        """Checks forever."""
        now, look_at = asyncio.get_running_loop().time, 0.0
        while True:
            await self.probe()
            if self._watching_jobs and now() >= look_at:
                look_at = now() + OPEN_JOBS_EVERY
                await self.count_long_open()
            await asyncio.sleep(self._probe_retry if self._recording_health.failing() else self._probe_every)

    async def probe(self) -> None:
        """Checks whether anything can be recorded now. A slow write counts as a failure but is not cancelled, because
        how it ends counts too.
        """
        happened = frozenset(self._happened)

        async def write(tx: Transaction) -> None:
            await tx.condition.try_write()
            await tx.condition.note_last_times(happened)

        slow = asyncio.get_running_loop().call_later(SLOW_WRITE, self._record_slow_write)
        try:
            # Urgent, like people's requests, because it tests whether those can be recorded.
            await self._store.transact(write, urgent=True)
        except StoreError as error:
            self._recording_health.record_failure(error)
        else:
            self._happened -= happened
            self._recording_health.record_success()
        finally:
            slow.cancel()

    def _record_slow_write(self) -> None:
        error = StoreUnavailable(f"The database did not take a write in {SLOW_WRITE:.0f} s.")
        self._recording_health.record_failure(error)

    async def count_long_open(self) -> None:
        """Counts the jobs that have been open for hours without a change; logs when there are more."""
        try:
            found = await self._store.transact(
                lambda tx: tx.condition.long_open(before=tx.now - LONG_OPEN, limit=MAX_OPEN_JOBS)
            )
        except StoreError:
            return  # the probe reports it
        if found.count > self._long_open.count:
            logger.warning("%s", _words(found))
        self._long_open = found

    def warning(self) -> str:
        """Returns, for the health, how many jobs have been open for hours; empty if none has."""
        return _words(self._long_open) if self._long_open.count else ""


def _words(found: LongOpenJobs) -> str:
    what, hours = "1 job has" if found.count == 1 else f"{found.count} jobs have", found.oldest / 3600
    return (
        f"{what} been open for over {LONG_OPEN / 3600:.0f} hours without a change, the oldest for {hours:.0f} hours. "
        "Look at the agent behind the job API: Pagehand polls on."
    )
