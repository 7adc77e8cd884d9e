"""When GitHub wants to be left alone, and until when it is."""

import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from bot.jobserver.pull_requests.github.errors import BusyError
from bot.runtime.http.retry_after import LONGEST_WAIT, parse_retry_after

LONGEST_PATIENCE_S = 60.0
"""A job waits this long, and no longer, for a rate limit to end."""
_UNSAID_S = 60.0
"""What GitHub asks to wait where a secondary rate limit does not say."""
_LIMITING = {403, 429}


def seconds_to_wait(status: int, said: str, headers: Mapping[str, str], *, now: float) -> float | None:
    """Returns how long an answer asks to wait; None where it is about no rate limit.

    Source: GitHub, "Rate limits for the REST API". `headers` have names in lower case; `now` is in seconds since the
    epoch.
    """
    if status not in _LIMITING:
        return None
    after = parse_retry_after(headers.get("retry-after", ""), date=headers.get("date", ""), now=now)
    if after is not None:
        return after
    if headers.get("x-ratelimit-remaining", "") == "0":
        return _until_reset(headers.get("x-ratelimit-reset", ""), now)
    is_secondary = "rate limit" in said.lower() or "abuse" in said.lower()
    return _UNSAID_S if status == 429 or is_secondary else None  # noqa: PLR2004 - Too Many Requests


def _until_reset(reset: str, now: float) -> float:
    try:
        seconds = float(reset) - now
    except ValueError:
        return _UNSAID_S
    return min(max(seconds, 0.0), LONGEST_WAIT) + 1.0 if math.isfinite(seconds) else _UNSAID_S


class RateLimitGate:
    """Holds back all calls while GitHub wants it: whoever goes on asking may be locked out."""

    def __init__(self, *, now: Callable[[], float], sleep: Callable[[float], Awaitable[None]]) -> None:
        self._now = now
        self._sleep = sleep
        self._until = 0.0

    def hold(self, seconds: float) -> None:
        self._until = max(self._until, self._now() + seconds)

    async def wait(self) -> None:
        """Waits until calls may be made.

        Raises:
            BusyError: that would take more than a minute.
        """
        while (seconds := self._until - self._now()) > 0:
            if seconds > LONGEST_PATIENCE_S:
                raise BusyError(f"GitHub lets nothing through until {self._shown_end()}: it limits the rate of calls")
            await self._sleep(seconds)

    def _shown_end(self) -> str:
        return f"{datetime.fromtimestamp(math.ceil(self._until / 60) * 60, UTC):%H:%M} UTC"
