"""Decides how a job is stopped, and how the work of a failed one is discarded; and what people are told of it. Pure.

Where the job API can cancel, that is asked for till the job is seen to have ended, which is safe to repeat; all that
waits for the job waits for that. Elsewhere the agent is asked in words, which is best effort.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from bot.domain.jobs.job import ARCHIVED, Job, Problem
from bot.domain.notices import keys
from bot.domain.notices.messages import ActionAnswer, ActionAnswered, NewNotice
from bot.domain.notices.posts import AgentAskedToStop, JobStillStopping
from bot.domain.requests.request import Request
from bot.domain.threads.thread import ThreadState, surface_of

STOP_WORDS = "Stop. Change nothing more."
"""What the agent is told where the job API cannot cancel."""
CANCEL_AGAIN = 1.0
"""Seconds till a job that was cancelled and has not ended yet is cancelled again, which tells where it stands."""
STOP_PATIENCE = 30.0
"""Seconds for which what comes after a stop waits for the job's end; our own job server ends it within 5."""


class StopStep(Enum):
    """What is to be done about a stop."""

    NOTHING = "nothing"
    """There is nothing to stop: the job has ended."""
    DONE = "done"
    """The job has ended since it was cancelled."""
    CANCEL = "cancel"
    ASK_AGENT = "ask_agent"


@dataclass(frozen=True)
class Cancelled:
    """The job API took the cancel and answered with the job; None: a poll may have observed something newer."""

    job: Job | None = None


@dataclass(frozen=True)
class NothingToStop:
    """The job had ended."""


def is_at_work(state: ThreadState, now: float) -> bool:
    """Whether there may be something to stop: the job has not ended, or a follow-up went out and it did not show yet
    what comes of that.
    """
    if state.job is None or state.job.status == ARCHIVED or state.failure.problem is Problem.GONE:
        return False
    awaited = state.round > 0 and not state.told.announced and (state.work.unseen or now < state.work.poll_until)
    return awaited or not state.job.ended


def stop_step(state: ThreadState, now: float, *, can_cancel: bool) -> StopStep:
    """Decides what a stop takes, by what is known of the job."""
    if not is_at_work(state, now):
        return StopStep.DONE if state.people.stopped_by else StopStep.NOTHING
    return StopStep.CANCEL if can_cancel else StopStep.ASK_AGENT


def opened(state: ThreadState, request: Request, step: StopStep) -> ThreadState:
    """Prepares for a cancel: the end that the job comes to from now on is told as that of the stop, even if a poll sees
    it before the cancel is answered.
    """
    match step:
        case StopStep.CANCEL:
            return replace(state, people=replace(state.people, stopped_by=state.people.stopped_by or request.person_id))
        case StopStep.NOTHING | StopStep.DONE | StopStep.ASK_AGENT:
            return state
        case _:
            assert_never(step)


def not_stopped(state: ThreadState, request: Request) -> ThreadState:
    """Returns the state of a job of which this stop certainly came to nothing: its end is one like any other."""
    if state.people.stopped_by != request.person_id:
        return state
    return replace(state, people=replace(state.people, stopped_by=""))


def nothing_to_stop(request: Request, state: ThreadState) -> NewNotice:
    """Tells, its person alone, that there is nothing to stop, as far as is known."""
    unknown = state.job is None and state.failure.problem is Problem.UNCERTAIN
    answer = ActionAnswer.STOP_UNCERTAIN if unknown else ActionAnswer.NOTHING_TO_STOP
    return NewNotice(keys.nothing_to_stop(request), ActionAnswered(request.person_id, answer))


def still_stopping(request: Request) -> NewNotice:
    """Tells that the job API took the stop, though the job shows no end."""
    return NewNotice(keys.stop_told(request), JobStillStopping(request.person_id))


def agent_asked(request: Request) -> NewNotice:
    """Tells that the job API cannot stop a job, and what was done instead."""
    return NewNotice(keys.stop_told(request), AgentAskedToStop(request.person_id))


# Decides whether what a failed job got done can be thrown away, and what its person is told of that. Pure. Only a job
# API that tells of such work is asked to; asking it again does no harm.


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
    return DiscardStep.CALL if state.work.progress.partial_files else DiscardStep.NOTHING


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
    return replace(state, work=replace(state.work, progress=replace(state.work.progress, partial_files=0)))
