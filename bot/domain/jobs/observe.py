"""Decides, from a thread's state and a poll of its job, what to announce and when to poll again. Pure.

The thread's last word about the job's status is that of the card: a change is announced when it is observed, and one
that comes back in the same round (a round starts when a follow-up is sent) once it has lasted. A link is announced only
once. An observation that changes nothing announces nothing, except for what has lasted.
"""

import math
from dataclasses import dataclass, replace
from typing import assert_never

from bot.domain.delivery import announced_though_muted
from bot.domain.jobs.job import ARCHIVED, COMPLETED, FAILED, NO_DETAILS, Problem
from bot.domain.jobs.news import note_observed
from bot.domain.jobs.poll_pace import Polling, next_poll_in
from bot.domain.requests.request import RejectionReason
from bot.domain.threads.thread import Failure, ThreadState
from bot.jobapi.models import Job
from bot.notices.job import JobDisappeared, tells_of_an_end
from bot.notices.notice import NewNotice, NoticeKey
from bot.notices.requests import AccessDenied, OutageEnded, OutageStarted, RequestSummary

GONE_AFTER_NOT_FOUND = 3
"""404 responses of the job API in a row."""
MINUTE = 60.0
EXPLAIN_WITHIN = 60.0
"""Seconds that a rejected follow-up waits for a poll to explain the rejection, while the job API is unavailable."""


@dataclass(frozen=True)
class JobObserved:
    """The job API returned the job."""

    job: Job


@dataclass(frozen=True)
class JobNotFound:
    """The job API answered 404."""


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


Observation = JobObserved | JobNotFound | JobApiUnavailable


@dataclass(frozen=True)
class Decision:
    """The consequences of an observation. `next_poll_in` is in seconds; None: never."""

    state: ThreadState
    notices: tuple[NewNotice, ...] = ()
    card_changed: bool = False
    next_poll_in: float | None = None


def decide(
    state: ThreadState, observation: Observation, now: float, polling: Polling, *, jitter: float = 0.5
) -> Decision:
    """Decides the consequences of an observation. `jitter` is a random number from 0 to 1."""
    match observation:
        case JobObserved(job):
            after, notices = _observed(state, job, now, polling)
        case JobNotFound():
            after, notices = not_found(state, now, polling)
        case JobApiUnavailable():
            after, notices = note_outage(state, observation, now, polling.patience)
        case _:
            assert_never(observation)
    if state.people.muted_by:
        notices = [notice for notice in notices if announced_though_muted(notice.message)]
    after, rejections = _explain_rejections(after, observation, now)
    poll_in = next_poll_in(after, now, polling, jitter=jitter)
    if poll_in is None:
        # There are no more polls, so the outage would never end.
        after = replace(after, failure=replace(after.failure, outage_since=None))
    elif isinstance(observation, JobApiUnavailable):
        poll_in = max(poll_in, observation.retry_after or 0.0)
    return Decision(after, (*rejections, *notices), _shown(after) != _shown(state), poll_in)


def accepted_at_the_end(state: ThreadState, now: float, polling: Polling, first_tried_at: float | None) -> ThreadState:
    """Starts a round after a follow-up that was accepted by a job which, as far as is known, has ended. That end may
    belong to earlier work or already to this follow-up; if it was not announced since that was first tried, and lasts,
    it does.
    """
    ended = state.job is not None and state.job.status in {COMPLETED, FAILED}
    told = any(map(tells_of_an_end, state.announcements.announced))
    ended_since = first_tried_at is not None and state.work.work_ended_at >= first_tried_at
    told_since = ended_since and state.job is not None and state.announcements.last_status == state.job.status
    state = open_round(state, now, polling)
    if ended and not (told or told_since):
        state = replace(state, announcements=replace(state.announcements, last_status=""))
    return state


def open_round(state: ThreadState, now: float, polling: Polling, asker_id: str | None = None) -> ThreadState:
    """Starts a new round when a follow-up is sent: from now on every change of the job is news, and it is polled again.

    `asker_id` is who wrote it (empty: the requester); None if that is already recorded. The follow-up answers the
    agent's question, if there is one, and continues work that was kept after a failure.
    """
    return replace(
        state,
        round=state.round + 1,
        people=replace(state.people, asker_id=state.people.asker_id if asker_id is None else asker_id, stopped_by=""),
        work=state.work.in_next_round(now, now + polling.grace),
        announcements=state.announcements.in_next_round(),
    )


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


def with_problem(state: ThreadState, problem: Problem | None, text: str = "", until: int | None = None) -> ThreadState:
    """Returns the state with this problem instead of any previous one."""
    return replace(state, failure=state.failure.with_problem(problem, text, until))


def why_rejected(state: ThreadState, reason: RejectionReason) -> RejectionReason:
    """Returns why a follow-up was rejected, from its job's state. A 404 alone does not mean that the job is gone."""
    gone_for_good = state.failure.problem is Problem.GONE
    if state.job is not None and state.job.status == ARCHIVED and not gone_for_good:
        return RejectionReason.ARCHIVED
    return RejectionReason.NOT_FOUND if reason is RejectionReason.GONE and not gone_for_good else reason


def _with_outage(state: ThreadState, failure: JobApiUnavailable, now: float) -> ThreadState:
    problem = failure.problem if failure.status is None else Problem.NOT_ALLOWED
    return with_problem(state, problem, failure.words, failure.until(now))


def _explain_rejections(
    state: ThreadState, observation: Observation, now: float
) -> tuple[ThreadState, list[NewNotice]]:
    """Announces the rejections that waited for this poll, with the reason that it shows."""
    if isinstance(observation, JobApiUnavailable) and state.failure.outage_since is not None:
        next_poll_at = now + (observation.retry_after or 0.0)
        if next_poll_at - state.failure.outage_since < EXPLAIN_WITHIN:
            return state, []
    rejections = state.announcements.unexplained
    if not rejections:
        return state, []
    state = replace(state, announcements=replace(state.announcements, unexplained=()))
    return state, [
        NewNotice(each.key, replace(each.message, reason=why_rejected(state, each.message.reason)))
        for each in rejections
    ]


def not_found(state: ThreadState, now: float, polling: Polling) -> tuple[ThreadState, list[NewNotice]]:
    """Records a 404. From when on it means that the job is gone is an outage, which ends if the job is there again."""
    if state.failure.problem is Problem.GONE:
        return state, []
    failure = state.failure
    count, since = failure.not_found_count + 1, now if failure.not_found_since is None else failure.not_found_since
    outage_since = failure.outage_since if failure.outage_announced else None
    state = _with_count(state, count, since)
    state = replace(state, failure=replace(state.failure, outage_since=outage_since))
    if count < GONE_AFTER_NOT_FOUND or now - since < polling.gone_after:
        return state, []
    outage = failure.outage_count + (not failure.outage_announced)
    failure = replace(state.failure, outage_since=None, outage_announced=True, outage_count=outage)
    state = with_problem(replace(state, failure=failure), Problem.GONE)
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


def _observed(state: ThreadState, job: Job, now: float, polling: Polling) -> tuple[ThreadState, list[NewNotice]]:
    before, link_may_come = state.job, job.status == COMPLETED and job.pr_link is None
    details = job.details or NO_DETAILS
    job = _filled(job, before)
    state, recovery = found(state)
    ends_now = job.ended and not (before and before.ended and before.status == job.status)
    poll_until = now + polling.grace if link_may_come else now
    work = replace(
        state.work,
        unseen=False,
        changed_at=now if job != before else state.work.changed_at,
        poll_until=max(state.work.poll_until, poll_until) if ends_now else state.work.poll_until,
    )
    state, news = note_observed(replace(state, job=job, work=work), before, details, now, polling)
    return state, recovery + news


def _filled(job: Job, before: Job | None) -> Job:
    """Returns the job without its details, with earlier values for missing fields, because the link is null again in a
    new round.
    """
    before = before or job
    return replace(
        job,
        details=None,
        id=before.id,
        pr_link=job.pr_link or before.pr_link,
        repository=job.repository or before.repository,
        ref=job.ref or before.ref,
        model=job.model or before.model,
        created_at=job.created_at or before.created_at,
        archived_at=job.archived_at or before.archived_at,
    )


def _shown(state: ThreadState) -> tuple[object, ...]:
    """Returns what the card shows."""
    failure, work = state.failure, state.work
    problem = failure.problem, failure.problem_text, failure.problem_until
    return state.job, *problem, work.progress, bool(work.question), work.work_began_at, work.work_ended_at


_EVER = 1e9
"""Seconds: longer than anything is held back."""


def never_has_consequences(state: ThreadState, seen: JobObserved, now: float, polling: Polling) -> bool:
    """Returns whether an observation at this time has no consequences, now or later, except for the next poll.

    Consequences that depend only on time, like progress that was held back, appear at some moment and then remain. So
    an observation without consequences in the far future has none until then.
    """
    decision = decide(state, seen, now + _EVER, polling)
    return not decision.notices and not decision.card_changed and decision.state == state
