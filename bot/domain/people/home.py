"""What somebody's Home shows: their jobs, what waits, their defaults; for administrators how Pagehand is. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.domain.jobs.job import ACTIVE, ARCHIVED, COMPLETED, FAILED, Problem
from bot.domain.people.members import Preference
from bot.domain.threads.thread import Thread

JOBS_A_PAGE = 10


@dataclass(frozen=True)
class PartHealth:
    """A part of Pagehand that does not work, for how long, and why."""

    name: str
    failing_seconds: float
    reason: str = ""


@dataclass(frozen=True)
class HomeContent:
    """A page of somebody's Home.

    Attributes:
        person_id: Whose.
        page: Which page of their jobs, from 0.
        jobs: Those of the page, newest first.
        has_older: There are others on the next page.
        waiting: Jobs that wait for this person: the agent asks something.
        undecided: Jobs that wait for this person's choice of their project.
        preference: Their defaults.
        failing: For administrators: the parts of Pagehand that do not work; None for everybody else.
        updated_at: When this was found out, in seconds since the epoch.
    """

    person_id: str
    page: int = 0
    jobs: Sequence[Thread] = ()
    has_older: bool = False
    waiting: Sequence[Thread] = ()
    undecided: Sequence[Thread] = ()
    preference: Preference = field(default_factory=Preference)
    failing: Sequence[PartHealth] | None = None
    updated_at: float = 0.0


def waits_for_person(thread: Thread) -> bool:
    """Whether the agent has asked something that nobody has answered."""
    job = thread.state.job
    return job is not None and bool(thread.state.work.question) and job.status in {ACTIVE, COMPLETED, FAILED}


def may_be_undecided(thread: Thread) -> bool:
    """Whether the job's project is not known: it is being found out, or its person was asked."""
    return thread.state.job is None and thread.state.failure.problem is None and not thread.project


def can_be_retried(thread: Thread) -> bool:
    """Whether it makes sense to ask for the same job again: it failed, came to nothing, or may not have arrived."""
    job, problem = thread.state.job, thread.state.failure.problem
    if thread.state.replaced_by:
        return False
    if job is None:
        return problem in {Problem.UNCERTAIN, Problem.REJECTED, Problem.CANNOT_POST, Problem.STOPPED}
    return job.status == FAILED or (job.status in {COMPLETED, ARCHIVED} and not job.pr_link)
