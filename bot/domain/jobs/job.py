"""The remote Agent job, and what can stand between it and its thread."""

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.jobs.details import JobDetails

ACTIVE, COMPLETED, ARCHIVED, FAILED = "active", "completed", "archived", "failed"
TERMINAL = frozenset({COMPLETED, ARCHIVED, FAILED})
"""The statuses that end polling (specification, part 3). Any other one, known or not, is work in progress."""


@dataclass(frozen=True)
class Job:
    """The remote Agent job, as the API last showed it (specification, part 2). All but id and status can be missing.

    `details` are those of this one look: what is known of a thread's job is kept without them.
    """

    id: str
    status: str
    pr_link: str | None = None
    repository: str | None = None
    ref: str | None = None
    model: str | None = None
    created_at: str | None = None
    archived_at: str | None = None
    details: JobDetails | None = None

    @property
    def ended(self) -> bool:
        """Whether polling may stop."""
        return self.status in TERMINAL


class Problem(StrEnum):
    """What stands between a thread and its job, for the card; None when nothing does."""

    OUT_OF_REACH = "out_of_reach"
    RATE_LIMITED = "rate_limited"
    """429: what may be asked of the job API in a certain time is used up."""
    BUSY = "busy"
    """503 with Retry-After."""
    FAULTY = "faulty"
    """It answers, but nothing that can be used."""
    NOT_ALLOWED = "not_allowed"
    REJECTED = "rejected"
    UNCERTAIN = "uncertain"
    GONE = "gone"
    CANNOT_POST = "cannot_post"
    STOPPED = "stopped"
    """It was stopped before it was sent."""
    WITHDRAWN = "withdrawn"
    """The message that asked for it was deleted before it was sent."""
