"""Time as the machine has it, made steady."""

import time

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Where there is one, the clock that also counts the time a laptop sleeps."""


class SteadyClock:
    """The wall clock at the process's start plus the time since: a step of the machine's clock does not show."""

    def __init__(self) -> None:
        self._offset = time.time() - self.monotonic()

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._offset + self.monotonic()

    def monotonic(self) -> float:
        """Seconds since some fixed point."""
        return time.clock_gettime(_STEADY)
