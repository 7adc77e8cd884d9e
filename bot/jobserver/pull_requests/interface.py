"""The interface of the pull request providers: this server itself, or a code host such as GitHub."""

from dataclasses import dataclass
from typing import Protocol

from bot.codehosts.pull_request import PullRequest
from bot.jobapi.models import PullRequestState, Requester


@dataclass(frozen=True)
class NewPullRequest:
    """A pull request to open.

    The title is plain text; the description is Markdown in which lines that begin with "> " quote the instruction.
    Both contain text by people and agents, so escape them for display. `commit` is what was pushed to the branch just
    now; None if that was longer ago.
    """

    branch: str
    title: str
    description: str
    requester: Requester | None = None
    commit: str | None = None


@dataclass(frozen=True)
class OpenedPullRequest:
    """A pull request that was opened."""

    number: int
    link: str
    branch: str
    state: PullRequestState


class PullRequests(Protocol):
    """A provider of pull requests. All methods raise JobServerError."""

    async def find(self, branch: str) -> OpenedPullRequest | None:
        """Returns the newest pull request of a branch in any state."""

    async def read(self, number: int) -> PullRequest:
        """Returns a pull request with its checks, reviews and comments, as they were at most ten seconds ago."""

    async def open(self, new: NewPullRequest) -> OpenedPullRequest:
        """Opens a pull request for a pushed branch, or returns the one that is already open.

        Raises:
            NothingToProposeError: the pull request would be empty.
        """

    def picture_link(self, link: str, commit: str, path: str) -> str:
        """Returns where people see a picture of the pull request at `link`, as it is in this commit."""

    async def add_extras(self, pull_request: OpenedPullRequest, requester: Requester | None, /) -> tuple[str, ...]:
        """Adds labels and a review request as configured; returns a sentence on each that could not be added."""

    async def update(self, pull_request: OpenedPullRequest, addition: str) -> None:
        """Appends to the description, unless it is already there; called after more commits were pushed."""
