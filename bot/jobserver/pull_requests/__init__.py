"""Where a job's branch becomes a pull request: a port, so that a forge can stand behind it as well."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class State(StrEnum):
    """What became of a pull request."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


@dataclass(frozen=True)
class Proposal:
    """What a job asks people to take over.

    The title is plain text; in the description lines that begin with "> " quote the instruction. Both hold what people
    wrote: escape them where they are shown.
    """

    branch: str
    title: str
    description: str


@dataclass(frozen=True)
class PullRequest:
    """A pull request as it is known to whoever keeps it."""

    number: int
    link: str
    branch: str
    state: State


class PullRequests(Protocol):
    """What the runner needs of a place that keeps pull requests. All methods raise JobServerError."""

    async def find_open(self, branch: str) -> PullRequest | None:
        """The open pull request of a branch."""
        ...

    async def open(self, proposal: Proposal) -> PullRequest:
        """Open a pull request for a branch that was pushed before."""
        ...

    async def update(self, pull_request: PullRequest, addition: str) -> None:
        """After more commits were pushed: add to the description, unless it is there already."""
        ...
