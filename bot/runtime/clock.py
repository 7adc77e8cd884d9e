"""A wall clock that is not affected when the machine's clock is changed."""

import time
from typing import Protocol

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""CLOCK_BOOTTIME, where it exists, also counts the time while a laptop sleeps."""


class Clock(Protocol):
    """Time: `now` is in seconds since the epoch and never jumps; `monotonic` is for measuring."""

    def now(self) -> float:
        """Returns seconds since the epoch. A jump of the machine's clock while the process runs does not show."""

    def monotonic(self) -> float:
        """Returns seconds since some fixed point; it advances while the process is paused."""


class SteadyClock:
    """The wall-clock time at the process's start, plus the time since then."""

    def __init__(self) -> None:
        self._offset = time.time() - self.monotonic()

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._offset + self.monotonic()

    def monotonic(self) -> float:
        """Seconds since an arbitrary fixed point."""
        return time.clock_gettime(_STEADY)
