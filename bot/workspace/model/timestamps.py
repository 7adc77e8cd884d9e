"""Slack timestamps, which are the ids of messages too."""

import re
from collections.abc import Callable

_TIMESTAMP = re.compile(r"\d{1,12}\.\d{1,6}", re.ASCII)


class Timestamps:
    """Gives out timestamps, unique and increasing: seconds and microseconds, such as ``1700000000.000100``."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last = 0

    def next(self) -> str:
        self._last = max(int(self._now() * 1_000_000), self._last + 1)
        return timestamp_of(self._last)

    def advance_past(self, ts: str) -> None:
        """Makes all further timestamps later than one that was given before this process started."""
        self._last = max(self._last, microseconds(ts))


def is_timestamp(text: str) -> bool:
    return _TIMESTAMP.fullmatch(text) is not None


def microseconds(ts: str) -> int:
    """Returns a timestamp as a number, to compare. Text that is not one raises ValueError."""
    seconds, _, fraction = ts.partition(".")
    return int(seconds) * 1_000_000 + int(fraction.ljust(6, "0")[:6] or 0)


def timestamp_of(moment: int) -> str:
    """Returns the timestamp of a moment in microseconds since 1970."""
    return f"{moment // 1_000_000}.{moment % 1_000_000:06d}"
