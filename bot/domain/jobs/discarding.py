"""Decides whether what a failed job got done can be thrown away, and what its person is told of that. Pure.

Only a job API that tells of such work is asked to; asking it again does no harm.
"""

from dataclasses import dataclass, replace
from enum import Enum

from bot.domain.jobs.job import Job
from bot.domain.jobs.stopping import is_at_work
from bot.domain.notices import keys
from bot.domain.notices.messages import ActionAnswer, ActionAnswered, NewNotice
from bot.domain.requests.request import Request
from bot.domain.threads.surfaces import surface_of
from bot.domain.threads.thread import ThreadState


class DiscardStep(Enum):
    """What is to be done about a wish to discard."""

    NOTHING = "nothing"
    """As far as is known, no work is kept."""
    TOO_LATE = "too_late"
    """The agent goes on with it, or will."""
    CALL = "call"


@dataclass(frozen=True)
class Discarded:
    """The job API took the call and answered with the job. `outdated`: a poll may have observed something newer."""

    job: Job
    outdated: bool = False


@dataclass(frozen=True)
class NotDiscarded:
    """The job API was not asked, and why."""

    answer: ActionAnswer


def discard_step(state: ThreadState, now: float) -> DiscardStep:
    """Decides what it takes, by what is known of the job."""
    if is_at_work(state, now):
        return DiscardStep.TOO_LATE
    return DiscardStep.CALL if state.progress.partial_files else DiscardStep.NOTHING


def discard_answer(job: Job) -> ActionAnswer:
    """What a job that the job API answered with tells of its kept work."""
    if not job.ended:
        return ActionAnswer.DISCARD_TOO_LATE
    kept = job.details is not None and job.details.partial_files
    return ActionAnswer.NOT_DISCARDED if kept else ActionAnswer.DISCARDED


def told_of_discard(request: Request, answer: ActionAnswer) -> NewNotice:
    """Tells its person, and nobody else: the card shows the others that nothing is kept any more."""
    told = ActionAnswered(request.person_id, answer, asked_on=surface_of(request.source_key))
    return NewNotice(keys.action_answered(request.source_key), told)


def nothing_kept(state: ThreadState) -> ThreadState:
    """Returns the state of a job of which no work is kept."""
    return replace(state, progress=replace(state.progress, partial_files=0))
