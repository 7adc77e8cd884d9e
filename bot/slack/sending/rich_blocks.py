"""Which kinds of block this Slack takes: one that it refuses is left out for a day, in this process.

What a refused message is sent without, each attempt of the outbox tries one thing more. So each counts against Slack's
limits, and keeps what else is promised of a delivery.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.domain.delivery import TOO_LONG
from bot.runtime.recent import RecentDict
from bot.slack.rendering.blocks import ChatMessage, RichBlock

logger = logging.getLogger(__name__)

REST_SECONDS = 24 * 3_600.0
LeftOut = frozenset[RichBlock]
Tries = list[tuple[LeftOut, str]]
"""What each try left out, and why Slack refused it."""


@dataclass
class RichBlocks:
    """One per process. A message is known by what it would be with all kinds (`whole`), and by its thread."""

    monotonic: Callable[[], float] = time.monotonic
    _rests: dict[RichBlock, float] = field(default_factory=dict)
    _tried: RecentDict[str, tuple[ChatMessage, Tries]] = field(default_factory=lambda: RecentDict(100))

    def left_out(self, thread_id: str, whole: ChatMessage) -> LeftOut:
        """Returns the kinds to send a message without: those that rest, and then one, another, or all."""
        form = self._next(thread_id, whole)
        return frozenset(RichBlock) if form is None else form

    def refused(self, thread_id: str, whole: ChatMessage, left_out: LeftOut, reason: str) -> bool:
        """Records that Slack refused the message for its blocks. Returns whether there is a plainer one to try."""
        self._tried[thread_id] = whole, [*self._tried_of(thread_id, whole), (left_out, reason)]
        if self._next(thread_id, whole) is not None:
            return True
        del self._tried[thread_id]
        return False

    def taken(self, thread_id: str, whole: ChatMessage, left_out: LeftOut) -> None:
        """Records that Slack took the message. If it had refused the same one with more, that was the reason, except
        of one that was too long.
        """
        tried = self._tried_of(thread_id, whole)
        self._tried.pop(thread_id, None)
        if not tried or any(reason in TOO_LONG for _, reason in tried):
            return
        for kind in sorted(left_out - tried[0][0]):
            self._rests[kind] = self.monotonic() + REST_SECONDS
            logger.info("Slack refuses a card's %s block: for a day, cards are sent without it", kind)

    def _next(self, thread_id: str, whole: ChatMessage) -> LeftOut | None:
        now, tried = self.monotonic(), [form for form, _ in self._tried_of(thread_id, whole)]
        resting = frozenset(kind for kind, until in self._rests.items() if now < until)
        rich = whole.rich - resting
        forms = (resting, *(resting | {kind} for kind in sorted(rich)), resting | rich)
        return next((form for form in forms if form not in tried), None)

    def _tried_of(self, thread_id: str, whole: ChatMessage) -> Tries:
        message, tried = self._tried.get(thread_id, (whole, []))
        return tried if message == whole else []
