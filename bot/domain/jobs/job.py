"""The remote Agent job, and the problems that can occur with it."""

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.jobs.details import JobDetails

ACTIVE, COMPLETED, ARCHIVED, FAILED = "active", "completed", "archived", "failed"
TERMINAL = frozenset({COMPLETED, ARCHIVED, FAILED})
"""The statuses that end polling (specification, part 3). Any other, known or not, means work in progress."""


@dataclass(frozen=True)
class Job:
    """The remote Agent job, as the API last reported it (specification, part 2). All but id and status are optional.

    `details` belong to a single poll; they are not stored with a thread's job.
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
        """Whether the job has ended, so that polling may stop."""
        return self.status in TERMINAL


class Problem(StrEnum):
    """What prevents a job from working, as the card shows it."""

    OUT_OF_REACH = "out_of_reach"
    RATE_LIMITED = "rate_limited"
    """429: the job API's rate limit is used up."""
    BUSY = "busy"
    """503 with Retry-After."""
    FAULTY = "faulty"
    """The job API's responses are unusable."""
    NOT_ALLOWED = "not_allowed"
    REJECTED = "rejected"
    UNCERTAIN = "uncertain"
    GONE = "gone"
    CANNOT_POST = "cannot_post"
    STOPPED = "stopped"
    """The job was stopped before it was sent."""
    WITHDRAWN = "withdrawn"
    """The message that requested it was deleted before it was sent."""
