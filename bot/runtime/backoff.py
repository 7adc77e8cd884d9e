"""Exponential backoff: how long to wait before something that failed is tried again. Pure."""

from dataclasses import dataclass

_MOST_STEPS = 100
"""Attempts after which the delay grows no more; far beyond, a float would overflow."""


@dataclass(frozen=True)
class Backoff:
    """Waits `first` seconds, then `factor` times as long after each further failure, `longest` at most.

    `spread` keeps many that fail together from trying again together: each delay is multiplied by a number between its
    two, which `jitter` picks.
    """

    first: float
    longest: float
    factor: float = 2.0
    spread: tuple[float, float] = (1.0, 1.0)

    def delay(self, failures: int, *, jitter: float = 0.5) -> float:
        """Returns the seconds to wait after this many failures in a row. `jitter` is a random number from 0 to 1."""
        low, high = self.spread
        steps = min(failures - 1, _MOST_STEPS)
        return min(self.first * self.factor**steps, self.longest) * (low + (high - low) * jitter)
