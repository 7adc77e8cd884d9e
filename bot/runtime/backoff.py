"""Exponential backoff: how long to wait before the next attempt. Pure.

It is in the runtime, below the domain, because the supervisor and the job server use it, too.
"""

from dataclasses import dataclass

_MOST_STEPS = 100
"""Failures after which the delay stops growing; without a bound, a float would overflow in the end."""


@dataclass(frozen=True)
class Backoff:
    """Waits `first` seconds, then `factor` times as long after each further failure, up to `longest`.

    Each delay is multiplied by a number in the range `spread`, chosen by `jitter`, so that clients which fail together
    do not retry together.
    """

    first: float
    longest: float
    factor: float = 2.0
    spread: tuple[float, float] = (1.0, 1.0)

    def delay(self, failures: int, *, jitter: float = 0.5) -> float:
        """Returns the seconds to wait after `failures` failures in a row. `jitter` is a random number from 0 to 1."""
        low, high = self.spread
        steps = min(failures - 1, _MOST_STEPS)
        return min(self.first * self.factor**steps, self.longest) * (low + (high - low) * jitter)
