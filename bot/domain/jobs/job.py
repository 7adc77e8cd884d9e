"""The statuses of the remote Agent job, and the problems that can occur with it."""

from enum import StrEnum

from bot.jobapi.models import Status

ACTIVE, COMPLETED, ARCHIVED, FAILED = Status


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
