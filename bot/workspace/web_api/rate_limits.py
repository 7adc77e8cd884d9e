"""Slack's rate limits, for tests and trials that want them: off unless switched on."""

import math
from collections import deque
from collections.abc import Callable

POSTS = frozenset({"chat.postMessage", "chat.postEphemeral"})
POST_BURST = 3
MINUTE = 60.0


class RateLimits:
    """About one post a second in each channel with a short burst; other methods by their tier.

    Args:
        now: The clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._calls: dict[str, deque[float]] = {}

    def retry_after(self, method: str, channel: str, per_minute: int) -> int | None:
        """Returns whole seconds to wait, or None when the call may go on (and is counted)."""
        if method in POSTS:
            return self._count(f"{method} {channel}", POST_BURST, float(POST_BURST))
        return self._count(method, per_minute, MINUTE)

    def _count(self, key: str, allowed: int, seconds: float) -> int | None:
        now = self._now()
        times = self._calls.setdefault(key, deque())
        while times and times[0] <= now - seconds:
            times.popleft()
        if len(times) >= allowed:
            return max(1, math.ceil(times[0] + seconds - now))
        times.append(now)
        return None
