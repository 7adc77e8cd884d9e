"""Decides, from the job API's response to a request, its outcome and what people are told. Pure."""

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import assert_never

from bot.domain.jobs import observe, outages, proposals, stopping
from bot.domain.jobs.job import ARCHIVED, Problem
from bot.domain.jobs.poll_pace import GONE_AFTER, Polling, next_poll_in
from bot.domain.messages import beginning
from bot.domain.requests.follow_ups import noted
from bot.domain.requests.request import Doubt, RejectionReason, Request, RequestKind, RequestState, WayIn
from bot.domain.threads.thread import ThreadState, UnexplainedRejection
from bot.jobapi.models import Job
from bot.notices.answers import ActionAnswer, answered
from bot.notices.job import AgentAskedToStop, JobStillStopping
from bot.notices.notice import NewNotice, Reaction
from bot.notices.requests import OutageStarted, RequestRejected, RequestSummary, RequestUncertain
from bot.runtime.backoff import Backoff

BACKOFF = Backoff(first=2.0, longest=60.0, spread=(0.75, 1.25))
PATIENCE = 60.0
"""Seconds that a request may wait for the job API before that is announced."""
GIVE_UP_AFTER = 3 * 24 * 3600.0
"""Seconds of attempts after which a request is given up."""
NO_ANSWER = outages.JobApiUnavailable("does not answer properly", problem=Problem.FAULTY)
_CERTAIN = frozenset({RejectionReason.GONE, RejectionReason.ARCHIVED, RejectionReason.HANDED_BACK})
"""Reasons that no poll of the job explains better."""
QUOTED = 200
"""Characters of a follow-up in a message about it, so that people see which one is meant."""


@dataclass(frozen=True)
class Accepted:
    """The job API accepted it and returned the job. `outdated`: a poll may have observed something newer."""

    job: Job
    outdated: bool = False


@dataclass(frozen=True)
class Rejected:
    """The job API refuses it permanently; `words` is its message, `status` that of its response."""

    reason: RejectionReason
    words: str = ""
    status: int | None = None


@dataclass(frozen=True)
class Uncertain:
    """It may have arrived. `why` is for the log; `ask_again`: the server runs a repeated key only once; `words` are the
    job API's.
    """

    why: str
    ask_again: bool = False
    doubt: Doubt = Doubt.NO_ANSWER
    words: str = ""


SendOutcome = Accepted | stopping.Cancelled | stopping.NotDiscarded | Rejected | outages.JobApiUnavailable | Uncertain


@dataclass(frozen=True)
class Settlement:
    """The outcome of a request. `due_in` and `poll_in` are in seconds; `poll_in` None: no polling."""

    request_state: RequestState
    state: ThreadState
    notices: tuple[NewNotice, ...] = ()
    reaction: Reaction | None = None
    due_in: float = 0.0
    poll_in: float | None = None
    problem: str = ""
    uncertain: bool = False
    """It may have arrived."""


def settle(
    request: Request, state: ThreadState, outcome: SendOutcome, now: float, polling: Polling, *, jitter: float = 0.5
) -> Settlement:
    """Decides the outcome of a request. `jitter` is a random number from 0 to 1."""
    settlement = _settled(request, state, outcome, now, polling, jitter=jitter)
    in_vain = settlement.request_state in {RequestState.WAITING, RequestState.REJECTED}
    if request.kind is RequestKind.STOP and in_vain and not (request.uncertain or settlement.uncertain):
        # It certainly had no effect, so that the job's end is announced as usual again.
        settlement = replace(settlement, state=stopping.not_stopped(settlement.state, request))
    uncertain = request.uncertain or settlement.uncertain
    state, told = proposals.settled(request, settlement.state, settlement.request_state, uncertain=uncertain)
    poll_in = next_poll_in(state, now, polling, jitter=jitter)
    return replace(settlement, state=state, notices=(*settlement.notices, *told), poll_in=poll_in)


def _settled(
    request: Request, state: ThreadState, outcome: SendOutcome, now: float, polling: Polling, *, jitter: float
) -> Settlement:
    match outcome:
        case Accepted() if request.kind is RequestKind.DISCARD:
            made = _discarded(request, state, outcome, now, polling)
        case Accepted():
            made = _accepted(request, state, outcome, now, polling)
        case stopping.Cancelled():
            made = _cancelled(request, state, outcome, now, polling)
        case Rejected(RejectionReason.NOTHING_TO_STOP):
            # A switch stops the job that it replaces automatically, so nobody waits for an answer.
            told = () if request.way_in is WayIn.SWITCH else (stopping.nothing_to_stop(request, state),)
            made = Settlement(RequestState.REJECTED, state, told, problem=outcome.reason)
        case stopping.NotDiscarded(answer):
            made = Settlement(RequestState.ACCEPTED, state, (answered(request, answer),))
        case Rejected():
            made = _refused(request, state, outcome, now, polling, jitter=jitter)
        case outages.JobApiUnavailable():
            made = _unavailable(request, state, outcome, now, polling, jitter=jitter)
        case Uncertain(why) if outcome.ask_again and _waited(request, now) < GIVE_UP_AFTER:
            made = _retried_later(request, state, NO_ANSWER, now, jitter)
            made = replace(made, problem=why, uncertain=True)
        case Uncertain():
            made = _uncertain(request, state, outcome, now, polling)
        case _:
            assert_never(outcome)
    return made


def _refused(
    request: Request, state: ThreadState, outcome: Rejected, now: float, polling: Polling, *, jitter: float
) -> Settlement:
    unclear = outages.why_rejected(state, outcome.reason) is RejectionReason.NOT_FOUND
    if unclear and _waited(request, now) < GONE_AFTER:
        if request.kind is not RequestKind.DISCARD:  # which a job API may lack
            state, _ = outages.not_found(state, now)  # tells nobody: if the job is gone now, its request does
        if state.failure.problem is not Problem.GONE:
            due_in = BACKOFF.delay(request.attempts, jitter=jitter)
            return Settlement(RequestState.WAITING, state, due_in=due_in, problem=RejectionReason.NOT_FOUND)
    told_for_certain = outcome.status == HTTPStatus.CONFLICT  # that a plan can't be started, or was
    if request.uncertain and not told_for_certain and request.kind is not RequestKind.DISCARD:  # safe to repeat
        # An earlier attempt may have been accepted: before the job was gone, the project unknown, the quota used up.
        return _uncertain(request, state, Uncertain(outcome.words or outcome.reason), now, polling)
    return _rejected(request, state, outcome)


def _unavailable(
    request: Request,
    state: ThreadState,
    outcome: outages.JobApiUnavailable,
    now: float,
    polling: Polling,
    *,
    jitter: float,
) -> Settlement:
    if _waited(request, now) < GIVE_UP_AFTER:
        return _retried_later(request, state, outcome, now, jitter)
    if request.uncertain:  # an earlier attempt may have arrived
        return _uncertain(request, state, Uncertain(outcome.reason), now, polling)
    return _handed_back(request, state)


def _accepted(request: Request, state: ThreadState, outcome: Accepted, now: float, polling: Polling) -> Settlement:
    state = noted(state, request)
    if outcome.outdated and request.kind is not RequestKind.START:
        state, back = outages.found(state) if state.failure.problem is Problem.GONE else (state, [])
        notices = tuple(back)
    else:
        decision = observe.decide(state, observe.JobObserved(outcome.job), now, polling)
        state, notices = decision.state, decision.notices
    if request.kind is RequestKind.START:
        return Settlement(RequestState.ACCEPTED, state, notices)
    if request.kind is RequestKind.STOP:
        notices = (NewNotice(AgentAskedToStop.key(request), AgentAskedToStop(request.person_id)), *notices)
    if outcome.outdated or outcome.job.ended:
        state = observe.accepted_at_the_end(state, now, polling, request.first_tried_at)
    if state.job is not None and state.job.status == ARCHIVED:
        in_vain = rejection(request, RejectionReason.ACCEPTED_WHILE_ARCHIVED)
        return Settlement(RequestState.ACCEPTED, state, (*notices, in_vain), Reaction.PROBLEM)
    return Settlement(RequestState.ACCEPTED, state, notices, Reaction.ACCEPTED)


def _cancelled(
    request: Request, state: ThreadState, outcome: stopping.Cancelled, now: float, polling: Polling
) -> Settlement:
    """The stop is over when the job is observed to have ended. Later requests wait for that, up to STOP_PATIENCE."""
    notices: tuple[NewNotice, ...] = ()
    if outcome.job is not None:
        decision = observe.decide(state, observe.JobObserved(outcome.job), now, polling)
        state, notices = decision.state, decision.notices
    if state.job is None or state.job.ended:
        return Settlement(RequestState.ACCEPTED, state, notices, Reaction.ACCEPTED)
    if _waited(request, now) >= stopping.STOP_PATIENCE:
        still_stopping = NewNotice(JobStillStopping.key(request), JobStillStopping(request.person_id))
        return Settlement(RequestState.ACCEPTED, state, (*notices, still_stopping), Reaction.ACCEPTED)
    return Settlement(RequestState.WAITING, state, notices, due_in=stopping.CANCEL_AGAIN, uncertain=True)


def _discarded(request: Request, state: ThreadState, outcome: Accepted, now: float, polling: Polling) -> Settlement:
    notices: tuple[NewNotice, ...] = ()
    if not outcome.outdated:
        decision = observe.decide(state, observe.JobObserved(outcome.job), now, polling)
        state, notices = decision.state, decision.notices
    answer = stopping.discard_answer(outcome.job)
    done = answer is ActionAnswer.DISCARDED
    told = (*notices, answered(request, answer))
    reaction = Reaction.ACCEPTED if done else None
    return Settlement(RequestState.ACCEPTED, stopping.nothing_kept(state) if done else state, told, reaction)


def _rejected(request: Request, state: ThreadState, outcome: Rejected) -> Settlement:
    notices: tuple[NewNotice, ...] = ()
    message = RequestRejected(summary(request), outcome.reason, outcome.words, status=outcome.status)
    if request.kind is RequestKind.START:
        state = state.with_problem(Problem.REJECTED, outcome.words)
        notices = (NewNotice(RequestRejected.key(request), message),)
    elif (reason := outages.why_rejected(state, outcome.reason)) in _CERTAIN:
        notices = (NewNotice(RequestRejected.key(request), replace(message, reason=reason)),)
    else:  # the next poll of the job shows whether it is archived or gone
        waiting = UnexplainedRejection(RequestRejected.key(request), message)
        state = replace(
            state, announcements=replace(state.announcements, unexplained=(*state.announcements.unexplained, waiting))
        )
    return Settlement(RequestState.REJECTED, state, notices, _problem_reaction(request), problem=outcome.reason)


def rejection(request: Request, reason: RejectionReason) -> NewNotice:
    """Returns the announcement of a request that was not accepted."""
    return NewNotice(RequestRejected.key(request), RequestRejected(summary(request), reason))


def _retried_later(
    request: Request, state: ThreadState, outcome: outages.JobApiUnavailable, now: float, jitter: float
) -> Settlement:
    state, notices = _waiting(request, state, outcome, now)
    due_in = max(BACKOFF.delay(request.attempts, jitter=jitter), outcome.retry_after or 0.0)
    return Settlement(RequestState.WAITING, state, tuple(notices), due_in=due_in, problem=outcome.reason)


def _waiting(
    request: Request, state: ThreadState, outcome: outages.JobApiUnavailable, now: float
) -> tuple[ThreadState, list[NewNotice]]:
    """Announces a request that waits. If its job can be polled nevertheless, only the request is delayed. That is
    announced once for the request, because each successful poll would end an outage.
    """
    patience = PATIENCE - (outcome.retry_after or 0.0)
    if state.job is None or state.failure.outage_since is not None:
        return outages.note_outage(state, outcome, now, patience, waiting=summary(request))
    if outcome.status is None and _waited(request, now) < patience:
        return state, []
    return state, [outages.outage_notice(OutageStarted.delay_key(request), outcome, now, waiting=summary(request))]


def _waited(request: Request, now: float) -> float:
    return 0.0 if request.first_tried_at is None else now - request.first_tried_at


def _handed_back(request: Request, state: ThreadState) -> Settlement:
    reason = RejectionReason.HANDED_BACK
    notices = (rejection(request, reason),)
    return Settlement(RequestState.REJECTED, state, notices, _problem_reaction(request), problem=reason)


def _uncertain(request: Request, state: ThreadState, outcome: Uncertain, now: float, polling: Polling) -> Settlement:
    if request.kind is RequestKind.DISCARD:  # always safe to repeat
        return _handed_back(request, state)
    job_ended = True
    if request.kind is RequestKind.START:
        state = state.with_problem(Problem.UNCERTAIN)
    else:
        job_ended = state.job is not None and state.job.ended
        state = observe.open_round(state, now, polling)  # if it arrived after all, its effects are news
    told = RequestUncertain(summary(request), job_ended=job_ended, doubt=outcome.doubt, api_text=outcome.words)
    notice = NewNotice(RequestUncertain.key(request), told)
    reaction = _problem_reaction(request)
    return Settlement(RequestState.UNCERTAIN, state, (notice,), reaction, problem=outcome.why, uncertain=True)


def summary(request: Request) -> RequestSummary:
    """Returns what messages show of a request: the beginning of a follow-up, but none of a start's text."""
    text = beginning(request.text, QUOTED) if request.kind is RequestKind.FOLLOW_UP else ""
    return RequestSummary(request.id, request.person_id, request.kind, text)


def _problem_reaction(request: Request) -> Reaction | None:
    return None if request.kind is RequestKind.START else Reaction.PROBLEM
