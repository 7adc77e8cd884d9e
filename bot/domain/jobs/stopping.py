"""Decides how a job is stopped, what that withdraws, how a failed job's work is discarded, and what people are told.
Pure.

If the job API can cancel, the cancel is repeated, which is safe, until the job has ended; follow-ups wait meanwhile.
Otherwise a message asks the agent to stop, which is best effort.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from bot.domain.jobs.job import ARCHIVED, Problem
from bot.domain.requests.request import (
    HeldBecause,
    RejectionReason,
    Request,
    RequestKind,
    RequestState,
    WayIn,
    surface_of,
)
from bot.domain.threads.thread import ThreadState
from bot.jobapi.models import Job
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import NewNotice

STOP_WORDS = "Stop. Change nothing more."
"""The message to the agent if the job API cannot cancel."""
CANCEL_AGAIN = 1.0
"""Seconds until a job that was cancelled and has not ended is cancelled again. The response has its current state."""
STOP_PATIENCE = 30.0
"""Seconds for which requests after a stop wait for the job's end. Our own job server ends a job within 5 s."""
_WITHOUT_EFFECT = frozenset(
    {RequestState.RECEIVED, RequestState.PREPARING, RequestState.WITHDRAWN, RequestState.AWAITING_PERSON}
)
"""States of a stop that was not checked yet, or whose person has to confirm it."""


class StopStep(Enum):
    """How a stop is carried out."""

    NOTHING = "nothing"
    """There is nothing to stop, because the job has ended."""
    DONE = "done"
    """The job has ended after it was cancelled."""
    CANCEL = "cancel"
    ASK_AGENT = "ask_agent"


@dataclass(frozen=True)
class Cancelled:
    """The job API accepted the cancel and returned the job; None: a poll may have observed something newer."""

    job: Job | None = None


def is_at_work(state: ThreadState, now: float) -> bool:
    """Returns whether there may be something to stop: the job has not ended, or a follow-up was sent whose effect has
    not been observed yet.
    """
    if state.job is None or state.job.status == ARCHIVED or state.failure.problem is Problem.GONE:
        return False
    awaited = (
        state.round > 0 and not state.announcements.announced and (state.work.unseen or now < state.work.poll_until)
    )
    return awaited or not state.job.ended


def stop_step(state: ThreadState, now: float, *, can_cancel: bool) -> StopStep:
    """Decides how a stop is carried out, from the known state of the job."""
    if not is_at_work(state, now):
        return StopStep.DONE if state.people.stopped_by else StopStep.NOTHING
    return StopStep.CANCEL if can_cancel else StopStep.ASK_AGENT


def is_withdrawn_by(request: Request, stop: Request) -> bool:
    """Returns whether a request that was certainly not sent is withdrawn by a stop: a follow-up that was written before
    it. A line of a direct message that may be a job of its own is for no job yet.
    """
    if request.kind is not RequestKind.FOLLOW_UP or request.may_be_job or request.held_because is HeldBecause.STOPPED:
        return False
    return request.asked_at < stop.asked_at


def was_stopped_after(asked_at: str, stops: Iterable[Request], *, recorded_at: float = 0.0) -> bool:
    """Returns whether somebody stopped the job after this time (a `ts`), by a stop that was recorded after
    `recorded_at`. A switch stops the job that it replaces without withdrawing anything.
    """
    return any(
        stop.asked_at > asked_at and stop.recorded_at > recorded_at
        for stop in stops
        if stop.state not in _WITHOUT_EFFECT and stop.problem != RejectionReason.NOT_PERMITTED
        if stop.way_in is not WayIn.SWITCH
    )


def opened(state: ThreadState, request: Request, step: StopStep) -> ThreadState:
    """Records a cancel before it is sent: the job's end is then announced as stopped, even if a poll observes it before
    the response to the cancel arrives.
    """
    if step is not StopStep.CANCEL:
        return state
    return replace(state, people=replace(state.people, stopped_by=state.people.stopped_by or request.person_id))


def not_stopped(state: ThreadState, request: Request) -> ThreadState:
    """Returns the state of a job that this stop certainly did not affect: its end is announced as usual."""
    if state.people.stopped_by != request.person_id:
        return state
    return replace(state, people=replace(state.people, stopped_by=""))


def nothing_to_stop(request: Request, state: ThreadState) -> NewNotice:
    """Tells the person privately that there is nothing to stop, as far as is known."""
    unknown = state.job is None and state.failure.problem is Problem.UNCERTAIN
    answer = ActionAnswer.STOP_UNCERTAIN if unknown else ActionAnswer.NOTHING_TO_STOP
    told = ActionAnswered(request.person_id, answer, asked_on=surface_of(request.source_key))
    return NewNotice(ActionAnswered.key_of_needless_stop(request), told)


# Discarding the work of a failed job. Only a job API that reports such work is asked to, and repeating that is safe.


@dataclass(frozen=True)
class NotDiscarded:
    """The job API was not called; `answer` says why."""

    answer: ActionAnswer


def why_not_discarded(state: ThreadState, now: float) -> ActionAnswer | None:
    """Returns why a request to discard needs no call, as far as is known: the agent continues with the work, or will,
    or none is kept. None if it does.
    """
    if is_at_work(state, now):
        return ActionAnswer.DISCARD_TOO_LATE
    return None if state.work.progress.partial_files else ActionAnswer.NOTHING_TO_DISCARD


def discard_answer(job: Job) -> ActionAnswer:
    """Returns the answer to the person, from the job that the job API returned."""
    if not job.ended:
        return ActionAnswer.DISCARD_TOO_LATE
    kept = job.details is not None and job.details.partial_files
    return ActionAnswer.NOT_DISCARDED if kept else ActionAnswer.DISCARDED


def nothing_kept(state: ThreadState) -> ThreadState:
    """Returns the state of a job without kept work."""
    return replace(state, work=replace(state.work, progress=replace(state.work.progress, partial_files=0)))
