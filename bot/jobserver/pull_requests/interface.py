"""What every place that keeps pull requests offers: this server itself, or a code host such as GitHub."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class PullRequestState(StrEnum):
    """What became of a pull request."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


@dataclass(frozen=True)
class NewPullRequest:
    """A pull request to open.

    The title is plain text; in the description lines that begin with "> " quote the instruction. Both hold what people
    wrote: escape them where they are shown.
    """

    branch: str
    title: str
    description: str


@dataclass(frozen=True)
class PullRequest:
    """A pull request that was opened."""

    number: int
    link: str
    branch: str
    state: PullRequestState


class PullRequests(Protocol):
    """What the executor needs. All methods raise JobServerError."""

    async def find_open(self, branch: str) -> PullRequest | None:
        """Returns the open pull request of a branch."""
        ...

    async def open(self, new: NewPullRequest) -> PullRequest:
        """Opens a pull request for a branch that was pushed before."""
        ...

    async def update(self, pull_request: PullRequest, addition: str) -> None:
        """Adds to the description, unless it is there already; called after more commits were pushed."""
        ...
