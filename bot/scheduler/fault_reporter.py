"""The fault reporter: reports each fault of the set-up that the checks found to the administrator in Slack, once."""

import asyncio
import logging
from collections.abc import Sequence

from bot.errors import ChatError, ChatRejected, ChatUnreachable
from bot.ports.slack import Operator
from bot.scheduler.worker import NOTHING, Worker, WorkerSettings
from bot.store.transaction import Store
from bot.store.upkeep.faults import ClaimedFault

logger = logging.getLogger(__name__)

_RETRY, _LONGEST_RETRY = 30.0, 3_600.0
"""Seconds between two attempts: the first, and at most."""
_MOST_ATTEMPTS = 50
"""About two days; until then the health and the log report the fault as well."""
_CLAIM_INTERVAL = 5.0
"""Seconds: nobody waits for it."""
DAY = 86_400


class FaultReporter(Worker[ClaimedFault]):
    """Reports the faults that are due."""

    name = "fault reporter"

    def __init__(self, store: Store, operator: Operator, settings: WorkerSettings) -> None:
        super().__init__(store, settings, concurrency=2)
        self._operator = operator

    def claim_interval(self, claimed: int) -> float:  # noqa: ARG002 - the frame's signature
        """See Worker."""
        return _CLAIM_INTERVAL

    async def claim(self, limit: int) -> Sequence[ClaimedFault]:
        """Claims faults that are due."""
        return await self._store.transact(lambda tx: tx.faults.claim(self._owner, lease=self._lease, limit=limit))

    async def process(self, item: ClaimedFault, claimed_at: float) -> None:
        """Reports one fault. Its key contains the day on which it was found, so that it is reported again if it is
        fixed and comes back on another day.
        """
        try:
            # More attempts than this are claimed only if earlier ones ended in a bug of ours.
            if item.attempts <= _MOST_ATTEMPTS and not await self._tell_once(item, claimed_at):
                return
            again_in = None
        except ChatRejected as error:
            logger.warning("PAGEHAND_ADMIN cannot be told in Slack (%s): %s", error.reason, item.words)
            again_in = None
        except (ChatError, TimeoutError) as error:
            again_in = _again_in(item, error)
        if again_in is None:
            await self.record(lambda tx: tx.faults.settled(item.key, self._owner), leaves=NOTHING)
        else:
            await self.record(lambda tx: tx.faults.postpone(item.key, self._owner, due_in=again_in), leaves=NOTHING)

    async def _tell_once(self, item: ClaimedFault, claimed_at: float) -> bool:
        """Tells the administrator, unless an earlier attempt did. Returns False if the process was paused for so long
        that another one may be at it.

        If nothing can be looked up yet, it looks afterwards: the first message to a person shows where.
        """
        key = f"{item.key}/{item.found_at // DAY:.0f}"
        if not self.lease_covers_call(claimed_at):
            return False
        async with asyncio.timeout(self._settings.call_timeout):
            found = await self._operator.find(key, since=item.found_at)
        if found:
            return True
        if not self.lease_covers_call(claimed_at):
            return False
        async with asyncio.timeout(self._settings.call_timeout):
            await self._operator.tell(item.words, key)
            if found is None:
                await self._operator.find(key, since=item.found_at)
        return True


def _again_in(item: ClaimedFault, error: ChatError | TimeoutError) -> float | None:
    """Returns the seconds until the next attempt; None if there is none."""
    if item.attempts >= _MOST_ATTEMPTS:
        logger.warning("PAGEHAND_ADMIN could not be told in Slack: %s", item.words)
        return None
    asked = error.retry_after if isinstance(error, ChatUnreachable) else None
    return asked or min(_RETRY * 2 ** min(item.attempts - 1, 10), _LONGEST_RETRY)
