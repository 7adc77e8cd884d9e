"""Whether this Slack takes the blocks that not every Slack takes. Once it has refused them, they are left out for a
day, in this process.

The outbox sends a refused card again without them, as an attempt of its own. So it counts against Slack's limits, and
keeps what else is promised of a delivery.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.domain.delivery import TOO_LONG
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.sending.expiring_cache import RecentDict

logger = logging.getLogger(__name__)

REST_SECONDS = 24 * 3_600.0
_MOST_REFUSED = 100


@dataclass
class RichBlocks:
    """One per process. A message is known by what it would be with them (`whole`), and by its thread."""

    monotonic: Callable[[], float] = time.monotonic
    _rest_until: float = float("-inf")
    _refused: RecentDict[str, tuple[ChatMessage, str]] = field(default_factory=lambda: RecentDict(_MOST_REFUSED))

    def left_out(self, thread_id: str, whole: ChatMessage) -> bool:
        """Returns whether to send a message without them."""
        return self.monotonic() < self._rest_until or self._why_refused(thread_id, whole) is not None

    def refused(self, thread_id: str, whole: ChatMessage, reason: str) -> bool:
        """Records that Slack refused the message for its blocks. Returns whether there is a plainer one to try."""
        if not whole.is_rich or self.left_out(thread_id, whole):
            self._refused.pop(thread_id, None)
            return False
        self._refused[thread_id] = whole, reason
        return True

    def taken(self, thread_id: str, whole: ChatMessage) -> None:
        """Records that Slack took the message. If it had refused the same one with rich blocks, those were the reason,
        except of one that was too long.
        """
        why = self._why_refused(thread_id, whole)
        self._refused.pop(thread_id, None)
        if why is not None and why not in TOO_LONG:
            self._rest_until = self.monotonic() + REST_SECONDS
            logger.info("Slack refuses the plan and the pull request as blocks: for a day, cards are sent without them")

    def _why_refused(self, thread_id: str, whole: ChatMessage) -> str | None:
        message, reason = self._refused.get(thread_id, (None, ""))
        return reason if message == whole else None
