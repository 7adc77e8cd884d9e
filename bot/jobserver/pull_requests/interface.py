"""The interface of whatever keeps pull requests: this server itself, or a code host such as GitHub."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from bot.jobserver.models import CheckResult, Extra, PullRequestState, Requester


@dataclass(frozen=True)
class MissingExtra:
    """What could not be added, and why, in a sentence."""

    extra: Extra
    reason: str


@dataclass(frozen=True)
class NewPullRequest:
    """A pull request to open.

    The title is plain text; the description is Markdown in which lines that begin with "> " quote the instruction. Both
    hold what people and agents wrote: escape them where they are shown.
    """

    branch: str
    title: str
    description: str
    requester: Requester | None = None


@dataclass(frozen=True)
class OpenedPullRequest:
    """A pull request that was opened. `checks` are those of its keeper, such as a code host's own."""

    number: int
    link: str
    branch: str
    state: PullRequestState
    checks: tuple[CheckResult, ...] = ()


class PullRequests(Protocol):
    """What the executor needs. All methods raise JobServerError."""

    async def find(self, branch: str) -> OpenedPullRequest | None:
        """Returns the newest pull request of a branch, whatever its state."""
        ...

    async def state(self, number: int) -> PullRequestState:
        """Returns the current state of a pull request; looked up only as often as its keeper allows."""
        ...

    async def open(self, new: NewPullRequest) -> OpenedPullRequest:
        """Opens a pull request for a branch that was pushed before; returns the one that is open if there is one.

        Raises:
            NothingToProposeError: it would be empty.
        """
        ...

    async def add_extras(
        self, pull_request: OpenedPullRequest, extras: Collection[Extra], requester: Requester | None, /
    ) -> tuple[MissingExtra, ...]:
        """Adds what the settings want, and returns what could not be added: a pull request is of use without it."""
        ...

    async def update(self, pull_request: OpenedPullRequest, addition: str) -> None:
        """Adds to the description, unless it is there already; called after more commits were pushed."""
        ...
