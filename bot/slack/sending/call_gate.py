"""Before what is asked of Slack: waits for what its limits allow, which all processes share.

What is said in threads goes through, since it got its call when it was claimed (bot.scheduler.outbox).
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Protocol

from bot.domain.slack_limits import SLACK_LIMITS, Grant, SlackLimits, SlackMethod
from bot.errors import ChatOverBudget, StoreError

logger = logging.getLogger(__name__)

LONGEST_WAIT = 3.0
"""Seconds that a call waits for its turn; if that is longer, whoever wants it is told when to come again."""
_ASKED_FOR = 10.0
"""Seconds to leave a method alone that answers 429 without a time."""
_SAID = frozenset(SlackMethod)


class CallBudget(Protocol):
    """What all processes together may call."""

    async def take(self, method: str, wanted: int, limits: SlackLimits) -> Grant:
        """Takes at most so many calls of a method. Raises StoreError."""

    async def refused(self, method: str, retry_after: float, limits: SlackLimits) -> None:
        """Records a 429. Raises StoreError."""


class CallGate:
    """One for a process. `limits` are Slack's; `sleep` lets time pass."""

    def __init__(
        self,
        budget: CallBudget,
        limits: SlackLimits = SLACK_LIMITS,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._budget = budget
        self._limits = limits
        self._sleep = sleep
        self._waiting: defaultdict[str, int] = defaultdict(int)
        self._taken: defaultdict[str, int] = defaultdict(int)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def enter(self, method: str) -> None:
        """Waits till a method may be called. Raises ChatOverBudget where that takes too long; a database that is away
        keeps nobody from calling.
        """
        if not self._is_limited(method):
            return
        self._waiting[method] += 1
        try:
            async with self._turns[method]:
                if self._taken[method] == 0:
                    self._taken[method] = await self._take(method)
                self._taken[method] -= 1
        finally:
            self._waiting[method] -= 1

    async def refused(self, method: str, retry_after: float | None) -> None:
        """Has everybody leave a method alone for as long as Slack says."""
        if not self._is_limited(method):
            return
        self._taken[method] = 0
        try:
            await self._budget.refused(method, _ASKED_FOR if retry_after is None else retry_after, self._limits)
        except StoreError as error:
            logger.debug("that Slack limits %s was not recorded: %s", method, error)

    async def _take(self, method: str) -> int:
        """Takes a call for each that waits now, in one transaction."""
        waited = 0.0
        while True:
            try:
                grant = await self._budget.take(method, self._waiting[method], self._limits)
            except StoreError:
                return 1
            if grant.calls:
                return grant.calls
            if waited + grant.wait > LONGEST_WAIT:
                raise ChatOverBudget("ratelimited", retry_after=grant.wait, method=method)
            await self._sleep(grant.wait)
            waited += grant.wait

    def _is_limited(self, method: str) -> bool:
        return method in self._limits.methods and method not in _SAID
