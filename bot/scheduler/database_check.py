"""Detects what would go unnoticed while idle: that the database cannot be written."""

import asyncio
from dataclasses import KW_ONLY, dataclass, field

from bot.domain.findings import LastTime
from bot.errors import StoreError, StoreUnavailable
from bot.runtime.health import RecordingHealth
from bot.store.store import Store, Transaction

PROBE_EVERY = 20.0
"""Seconds between two probes; each writes a few kilobytes."""
PROBE_RETRY = 5.0
"""The same, while the last one failed."""
SLOW_WRITE = 5.0
"""Seconds that a write may take. Slack waits for three; a busy machine may stall for a moment."""


@dataclass(eq=False)
class DatabaseProbe:
    """Writes to the database regularly.

    Args:
        store: The store to check.
        recording_health: Gets the results of the writes.
        happened: The kinds of events since the last write, which records them.
        probe_every: Seconds between two writes.
        probe_retry: The same, while the last one failed.
    """

    store: Store
    recording_health: RecordingHealth
    _: KW_ONLY
    happened: set[LastTime] = field(default_factory=set)
    probe_every: float = PROBE_EVERY
    probe_retry: float = PROBE_RETRY

    async def run(self) -> None:
        """Checks forever."""
        while True:
            await self.probe()
            await asyncio.sleep(self.probe_retry if self.recording_health.failing() else self.probe_every)

    async def probe(self) -> None:
        """Checks whether anything can be recorded now. A slow write counts as a failure but is not cancelled, because
        how it ends counts too.
        """
        happened = frozenset(self.happened)

        async def write(tx: Transaction) -> None:
            await tx.condition.try_write()
            await tx.condition.note_last_times(happened)

        slow = asyncio.get_running_loop().call_later(SLOW_WRITE, self._record_slow_write)
        try:
            # Urgent, like people's requests, because it tests whether those can be recorded.
            await self.store.transact(write, urgent=True)
        except StoreError as error:
            self.recording_health.record_failure(error)
        else:
            self.happened -= happened
            self.recording_health.record_success()
        finally:
            slow.cancel()

    def _record_slow_write(self) -> None:
        error = StoreUnavailable(f"The database did not take a write in {SLOW_WRITE:.0f} s.")
        self.recording_health.record_failure(error)
