"""Time as the machine has it, made steady."""

import time


class SteadyClock:
    """The wall clock at the process's start plus the time since: a step of the machine's clock does not show."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._offset + time.monotonic()

    def monotonic(self) -> float:
        """Seconds since some fixed point."""
        return time.monotonic()
