"""Caches the states of pull requests for a short time."""

from collections.abc import Callable

from bot.jobapi.models import PullRequestState

_REMEMBERED = 1_000


class RecentStates:
    """A cache of states by number, each valid for `for_seconds`. `now` is in seconds."""

    def __init__(self, *, for_seconds: float, now: Callable[[], float]) -> None:
        self._for_seconds = for_seconds
        self._now = now
        self._seen: dict[int, tuple[float, PullRequestState]] = {}

    def get(self, number: int) -> PullRequestState | None:
        """Returns the cached state; None if there is none or it has expired."""
        at, state = self._seen.get(number, (float("-inf"), None))
        return state if self._now() - at < self._for_seconds else None

    def remember(self, number: int, state: PullRequestState) -> None:
        self._seen.pop(number, None)
        self._seen[number] = (self._now(), state)
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
