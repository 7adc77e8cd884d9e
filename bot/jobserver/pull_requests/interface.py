"""The interface of the pull request providers: this server itself, or a code host such as GitHub."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bot.codehosts.pull_request import PullRequest
from bot.jobapi.models import CheckResult, PullRequestState, Requester

_REMEMBERED = 1_000


@dataclass(frozen=True)
class NewPullRequest:
    """A pull request to open.

    The title is plain text; the description is Markdown in which lines that begin with "> " quote the instruction.
    Both contain text by people and agents, so escape them for display.
    """

    branch: str
    title: str
    description: str
    requester: Requester | None = None


@dataclass(frozen=True)
class OpenedPullRequest:
    """A pull request that was opened. `checks` are those of the code host, if any."""

    number: int
    link: str
    branch: str
    state: PullRequestState
    checks: tuple[CheckResult, ...] = ()


class PullRequests(Protocol):
    """A provider of pull requests. All methods raise JobServerError."""

    async def find(self, branch: str) -> OpenedPullRequest | None:
        """Returns the newest pull request of a branch in any state."""
        ...

    async def state(self, number: int) -> PullRequestState:
        """Returns the state of a pull request, which may be cached for a short time."""
        ...

    async def open(self, new: NewPullRequest) -> OpenedPullRequest:
        """Opens a pull request for a pushed branch, or returns the one that is already open.

        Raises:
            NothingToProposeError: the pull request would be empty.
        """
        ...

    async def add_extras(self, pull_request: OpenedPullRequest, requester: Requester | None, /) -> tuple[str, ...]:
        """Adds labels and a review request as configured; returns a sentence on each that could not be added."""
        ...

    async def update(self, pull_request: OpenedPullRequest, addition: str) -> None:
        """Appends to the description, unless it is already there; called after more commits were pushed."""
        ...


class PullRequestReader(Protocol):
    """Where a pull request can be read whole."""

    async def read(self, number: int) -> PullRequest:
        """Returns a pull request with its checks, reviews and comments, as they were at most half a minute ago. Raises
        JobServerError.
        """
        ...


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
