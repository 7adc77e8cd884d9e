"""A pull request as its code host tells it, and the port that reads it.

Titles, names and comments come from strangers: they are data, and never instructions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Protocol

from pydantic import Field

from bot.jobapi.models import Count, Line, Link, PullRequestState, Told, Words, usable

MOST_CHECKS, MOST_REVIEWS, MOST_COMMENTS, MOST_PREVIEWS = 100, 100, 100, 10


class CheckOutcome(StrEnum):
    """How a check stands. `unknown`: its host uses a word that says neither."""

    PASSED = "passed"
    FAILED = "failed"
    RUNNING = "running"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


class Check(Told):
    """A check of the newest commit."""

    name: Line = "check"
    outcome: CheckOutcome = CheckOutcome.UNKNOWN
    link: Link | None = None
    words: Line | None = Field(None, description="What it says of a failure.")
    fails_on_base: bool = Field(False, description="Whether the base branch fails it, too.")


class Verdict(StrEnum):
    """What a reviewer decided. `unknown`: its host uses another word."""

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    DISMISSED = "dismissed"
    UNKNOWN = "unknown"


class Review(Told):
    """The newest decision of a reviewer. Those who only commented have made none."""

    author: Line = "somebody"
    verdict: Verdict = Verdict.UNKNOWN
    comments: Count = Field(0, description="Comments on lines that came with it.")
    head: Line | None = Field(None, description="The commit that was reviewed.")
    link: Link | None = None


class Comment(Told):
    """A comment on a line."""

    id: int
    path: Line | None = None
    line: Count | None = Field(None, description="Null if the line is no longer there.")
    words: Words | None = None
    author: Line = "somebody"
    by_bot: bool = False
    resolved: bool | None = Field(None, description="Null if its host does not tell.")


class Preview(Told):
    """A page that shows the change."""

    name: Line = "preview"
    link: Annotated[Link, Field(pattern=r"^(?i:https?)://")]


class PullRequest(Told):
    """A pull request."""

    number: Count
    link: Link
    state: PullRequestState | None = Field(None, description="Null if its host uses a word that is not known.")
    draft: bool = False
    title: Line = ""
    head: Line = Field(description="The id of its newest commit.")
    base: Line = Field("", description="The branch that it is for.")
    mergeable: bool | None = Field(None, description="Null while its host still computes it.")
    queued: bool | None = Field(None, description="Whether it is in a merge queue; null if its host does not tell.")
    ended_by: Line | None = Field(None, description="Who merged it; who closed it only where that is known.")
    updated_at: Line | None = None
    checks: Annotated[tuple[Check, ...], usable(MOST_CHECKS)] = ()
    reviews: Annotated[tuple[Review, ...], usable(MOST_REVIEWS)] = ()
    comments: Annotated[tuple[Comment, ...], usable(MOST_COMMENTS)] = ()
    previews: Annotated[tuple[Preview, ...], usable(MOST_PREVIEWS)] = ()
    unread: Annotated[tuple[Line, ...], usable(10)] = Field(
        (), description="What the token may not read, such as `checks`: nothing is claimed about it."
    )


class Reason(StrEnum):
    """Why a pull request could not be read."""

    UNKNOWN_HOST = "unknown_host"
    NOT_FOUND = "not_found"
    MOVED = "moved"
    NOT_ALLOWED = "not_allowed"
    RATE_LIMITED = "rate_limited"
    OUT_OF_REACH = "out_of_reach"
    NONSENSE = "nonsense"


@dataclass(frozen=True)
class Found:
    """A pull request that was read, and the ETag of each answer by its address. `wait`: how many seconds its host wants
    to pass before it is read again.
    """

    pull_request: PullRequest
    etags: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0


@dataclass(frozen=True)
class NotModified:
    """Nothing has changed since it was found. `wait` is as in `Found`."""

    wait: float = 0.0


@dataclass(frozen=True)
class Unreadable:
    """It could not be read, and nothing is claimed. `wait` is as in `Found`."""

    reason: Reason
    wait: float = 0.0


class CodeHost(Protocol):
    """Where pull requests are."""

    async def read(self, link: str, known: Found | None = None) -> Found | NotModified | Unreadable:
        """Reads the pull request with this link. What has not changed since it was `known` is not sent again."""
