"""Decides what an outage of the job API, or a job that it does not know, means for a thread. Pure."""

import math
from dataclasses import dataclass, replace

from bot.domain.jobs.job import ARCHIVED, Problem
from bot.domain.jobs.poll_pace import GONE_AFTER
from bot.domain.requests.request import RejectionReason
from bot.domain.threads.thread import Failure, ThreadState
from bot.notices.job import JobDisappeared
from bot.notices.notice import NewNotice, NoticeKey
from bot.notices.requests import AccessDenied, OutageEnded, OutageStarted, RequestSummary

GONE_AFTER_NOT_FOUND = 3
"""404 responses of the job API in a row."""
MINUTE = 60.0


@dataclass(frozen=True)
class JobApiUnavailable:
    """The job API could not be reached, or gave no usable response. `status` is 401 or 403 if our key is the reason.

    `retry_after` is in seconds; `words` are the job API's own.
    """

    reason: str
    status: int | None = None
    retry_after: float | None = None
    problem: Problem = Problem.OUT_OF_REACH
    words: str = ""

    def until(self, now: float) -> int | None:
        """Returns when the job API may be called again, to the minute; None if unknown or soon."""
        asked_to_wait = self.problem in {Problem.RATE_LIMITED, Problem.BUSY}
        if not asked_to_wait or self.retry_after is None or self.retry_after < MINUTE:
            return None
        return int(math.ceil((now + self.retry_after) / MINUTE) * MINUTE)


def note_outage(
    state: ThreadState,
    failure: JobApiUnavailable,
    now: float,
    patience: float,
    *,
    waiting: RequestSummary | None = None,
) -> tuple[ThreadState, list[NewNotice]]:
    """Records an outage. It is announced after `patience` seconds, or at once if our key is the reason.

    `waiting`: a request that waits for its end. Of a job that is gone, an outage says nothing.
    """
    if state.failure.problem is Problem.GONE:
        return state, []
    if waiting is None:
        state = _with_count(state, 0, None)  # a 404 before the outage and one after it do not make a lasting one
    since = state.failure.outage_since if state.failure.outage_since is not None else now
    state = replace(state, failure=replace(state.failure, outage_since=since))
    if state.failure.outage_announced:
        # The card shows the newest reason: that of the last poll or, if there is no job yet, of the request.
        return (state if waiting and state.job else _with_outage(state, failure, now)), []
    if failure.status is None and now - since < patience:
        return state, []
    state, count = _with_outage(state, failure, now), state.failure.outage_count + 1
    state = replace(state, failure=replace(state.failure, outage_announced=True, outage_count=count))
    return state, [outage_notice(OutageStarted.key(count), failure, now, waiting=waiting)]


def outage_notice(
    key: NoticeKey, failure: JobApiUnavailable, now: float, *, waiting: RequestSummary | None
) -> NewNotice:
    """Returns the announcement of an outage. `waiting`: a request that waits for its end."""
    if failure.status is not None:
        return NewNotice(key, AccessDenied(failure.status, waiting=waiting))
    return NewNotice(
        key, OutageStarted(failure.problem, failure.reason, failure.words, failure.until(now), waiting=waiting)
    )


def _with_outage(state: ThreadState, failure: JobApiUnavailable, now: float) -> ThreadState:
    problem = failure.problem if failure.status is None else Problem.NOT_ALLOWED
    return state.with_problem(problem, failure.words, failure.until(now))


def why_rejected(state: ThreadState, reason: RejectionReason) -> RejectionReason:
    """Returns why a follow-up was rejected, from its job's state. A 404 alone does not mean that the job is gone."""
    gone_for_good = state.failure.problem is Problem.GONE
    if state.job is not None and state.job.status == ARCHIVED and not gone_for_good:
        return RejectionReason.ARCHIVED
    return RejectionReason.NOT_FOUND if reason is RejectionReason.GONE and not gone_for_good else reason


def not_found(state: ThreadState, now: float) -> tuple[ThreadState, list[NewNotice]]:
    """Records a 404. From when on it means that the job is gone is an outage, which ends if the job is there again."""
    if state.failure.problem is Problem.GONE:
        return state, []
    failure = state.failure
    count, since = failure.not_found_count + 1, now if failure.not_found_since is None else failure.not_found_since
    outage_since = failure.outage_since if failure.outage_announced else None
    state = _with_count(state, count, since)
    state = replace(state, failure=replace(state.failure, outage_since=outage_since))
    if count < GONE_AFTER_NOT_FOUND or now - since < GONE_AFTER:
        return state, []
    outage = failure.outage_count + (not failure.outage_announced)
    failure = replace(state.failure, outage_since=None, outage_announced=True, outage_count=outage)
    state = replace(state, failure=failure).with_problem(Problem.GONE)
    return state, [NewNotice(JobDisappeared.key(outage), JobDisappeared())]


def _with_count(state: ThreadState, count: int, since: float | None) -> ThreadState:
    return replace(state, failure=replace(state.failure, not_found_count=count, not_found_since=since))


def found(state: ThreadState) -> tuple[ThreadState, list[NewNotice]]:
    """Returns the state of a job that the job API knows, and the end of an outage that was announced."""
    failure, nothing_wrong = state.failure, Failure(outage_count=state.failure.outage_count)
    if failure == nothing_wrong:
        return state, []
    news = []
    if failure.outage_announced:
        news = [NewNotice(OutageEnded.key(failure.outage_count), OutageEnded(failure.problem))]
    return replace(state, failure=nothing_wrong), news
