"""The content of a person's Home: their jobs, open questions and defaults; for administrators also the health. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.domain.jobs.job import ACTIVE, ARCHIVED, COMPLETED, FAILED, Problem
from bot.domain.people.members import Preference
from bot.domain.requests.request import Request
from bot.domain.threads.thread import Thread

JOBS_A_PAGE = 10
_OVER = frozenset(
    {
        Problem.REJECTED,
        Problem.UNCERTAIN,
        Problem.GONE,
        Problem.CANNOT_POST,
        Problem.STOPPED,
        Problem.WITHDRAWN,
    }
)
"""Problems after which there is nothing to stop."""


@dataclass(frozen=True)
class PartHealth:
    """A part of Pagehand that does not work, with how long and why."""

    name: str
    failing_seconds: float
    reason: str = ""


@dataclass(frozen=True)
class HomeContent:
    """A page of somebody's Home.

    Attributes:
        person_id: The person.
        page: The page of their jobs, from 0.
        jobs: The jobs of the page, newest first.
        has_older: Whether there is a next page.
        waiting: Jobs whose agent waits for this person's answer.
        held: The requests that wait for this person, with the threads of their jobs.
        preference: Their defaults.
        failing: For administrators, the parts of Pagehand that do not work; None for everybody else.
        updated_at: When the content was read, in seconds since the epoch.
    """

    person_id: str
    page: int = 0
    jobs: Sequence[Thread] = ()
    has_older: bool = False
    waiting: Sequence[Thread] = ()
    held: Sequence[tuple[Request, Thread]] = ()
    preference: Preference = field(default_factory=Preference)
    failing: Sequence[PartHealth] | None = None
    updated_at: float = 0.0


def waits_for_person(thread: Thread) -> bool:
    """Returns whether the agent has asked something that nobody has answered."""
    job = thread.state.job
    return job is not None and bool(thread.state.work.question) and job.status in {ACTIVE, COMPLETED, FAILED}


def can_only_be_stopped_here(thread: Thread) -> bool:
    """Returns whether a job that has not ended has no card yet, which has the button otherwise."""
    job = thread.state.job
    ended = thread.state.failure.problem in _OVER or (job is not None and job.ended)
    return thread.card_ts is None and not ended


def can_be_retried(thread: Thread) -> bool:
    """Returns whether a retry makes sense: the job failed, had no result, or may not have arrived."""
    job, problem = thread.state.job, thread.state.failure.problem
    if thread.state.replaced_by:
        return False
    if job is None:
        return problem in {Problem.UNCERTAIN, Problem.REJECTED, Problem.CANNOT_POST, Problem.STOPPED}
    return job.status == FAILED or (job.status in {COMPLETED, ARCHIVED} and not job.pr_link)
