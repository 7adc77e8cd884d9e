"""Slack's limits for tests: practically none, or all of them with a shortened minute."""

import math
import time

from bot.domain.slack_limits import SLACK_LIMITS, Limit, SlackLimits
from bot.workspace.web_api.endpoint import RateLimits

_ANY_NUMBER = Limit(6_000_000, 10_000)
ANY_NUMBER = SlackLimits(
    dict.fromkeys(SLACK_LIMITS.methods, _ANY_NUMBER), dict.fromkeys(SLACK_LIMITS.channel, _ANY_NUMBER)
)
"""Any method may be called as often as a test likes; Slack's own 429s still count."""


def faster(limits: SlackLimits, pace: float) -> SlackLimits:
    """The same bursts, with this many times as many calls a minute."""

    def each(limit: Limit) -> Limit:
        return Limit(limit.per_minute * pace, limit.burst)

    methods = {method: each(limit) for method, limit in limits.methods.items()}
    return SlackLimits(methods, {method: each(limit) for method, limit in limits.channel.items()})


class FasterRateLimits(RateLimits):
    """The limits that the workspace enforces, with Slack's minute shortened by this factor."""

    def __init__(self, pace: float) -> None:
        super().__init__(lambda: time.time() * pace)
        self._pace = pace

    def retry_after(self, method: str, channel: str, per_minute: int) -> int | None:
        seconds = super().retry_after(method, channel, per_minute)
        return None if seconds is None else max(1, math.ceil(seconds / self._pace))
