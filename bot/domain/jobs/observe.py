"""Decides, from a thread's state and a poll of its job, what to announce and when to poll again. Pure.

The thread's last word about the job's status is that of the card: a change is announced when it is observed, and one
that comes back in the same round (a round starts when a follow-up is sent) once it has lasted. A link is announced only
once. An observation that changes nothing announces nothing, except for what has lasted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import assert_never

from bot.domain.delivery import announced_though_muted
from bot.domain.jobs.job import (
    ACTIVE,
    ARCHIVED,
    COMPLETED,
    FAILED,
    NO_DETAILS,
    SHOWN_WORDS,
    JobReport,
    Progress,
    digest,
    end_mark,
    progress_of,
    question_form,
    report_of,
)
from bot.domain.jobs.outages import JobApiUnavailable, found, not_found, note_outage, why_rejected
from bot.domain.jobs.pictures import note_pictures
from bot.domain.jobs.poll_pace import Polling, next_poll_in
from bot.domain.jobs.proposals import note_proposal, note_waiting
from bot.domain.jobs.proposals import tells_of_an_end as plan_tells_of_an_end
from bot.domain.projects import PostMode
from bot.domain.threads.thread import ThreadState
from bot.jobapi.models import TERMINAL, Job, JobDetails, PullRequestState
from bot.notices.job import (
    JobActiveAgain,
    JobArchived,
    JobEnd,
    JobFailed,
    JobFinished,
    JobSilent,
    JobStarted,
    JobStatusChanged,
    JobStopped,
    PullRequestFound,
    QuestionAsked,
    tells_of_an_end,
)
from bot.notices.notice import NewNotice, NoticeKey
from bot.runtime.text import shortened

JobNews = JobFinished | JobFailed | JobStopped | JobArchived | JobActiveAgain | JobStatusChanged
"""What can be said of a job's status."""
EXPLAIN_WITHIN = 60.0
"""Seconds that a rejected follow-up waits for a poll to explain the rejection, while the job API is unavailable."""


@dataclass(frozen=True)
class JobObserved:
    """The job API returned the job."""

    job: Job


@dataclass(frozen=True)
class JobNotFound:
    """The job API answered 404."""


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
            after, notices = not_found(state, now)
        case JobApiUnavailable():
            after, notices = note_outage(state, observation, now, polling.patience)
        case _:
            assert_never(observation)
    after, of_plan = note_waiting(after, now, polling)
    notices += of_plan
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


def _observed(state: ThreadState, job: Job, now: float, polling: Polling) -> tuple[ThreadState, list[NewNotice]]:
    before, link_may_come = state.job, job.status == COMPLETED and job.pr_link is None
    seen = _Seen(_filled(job, before), before, job.details or NO_DETAILS, now)
    state, recovery = found(state)
    ends_now = job.ended and not (before and before.ended and before.status == job.status)
    poll_until = now + polling.grace if link_may_come else now
    work = replace(
        state.work,
        unseen=False,
        changed_at=now if seen.job != before else state.work.changed_at,
        poll_until=max(state.work.poll_until, poll_until) if ends_now else state.work.poll_until,
    )
    state, news = _note_seen(replace(state, job=seen.job, work=work), seen, polling)
    return state, recovery + news


@dataclass(frozen=True)
class _Seen:
    """What a poll shows: the job, `before` as the poll before saw it, and its details now."""

    job: Job
    before: Job | None
    details: JobDetails
    now: float


def _note_seen(state: ThreadState, seen: _Seen, polling: Polling) -> tuple[ThreadState, list[NewNotice]]:
    """Records and announces what a poll shows of `state.job`."""
    state = _note_work(_note_progress(state, seen, polling.card_every), seen)
    state, plan = note_proposal(state, seen.job, seen.details, seen.now)
    if planned := plan_tells_of_an_end(state, seen.job, seen.details):
        state = replace(state, announcements=replace(state.announcements, last_status=seen.job.status))
    state, news = (state, []) if planned else _note_status(state, seen, polling)
    news += _note_silence(state, seen, polling)
    if news:
        announced = state.announcements.announced | {notice.key for notice in news}
        state = replace(state, announcements=replace(state.announcements, announced=announced))
    state, link = _announce_link(state, seen.job, news)
    state, question = _note_question(state, seen.details, news)
    if planned or _tell_of_an_end(news):
        state = _note_end(state, seen.details)
    state, pictures = note_pictures(state, seen.details)
    return state, plan + news + link + question + pictures


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


def _note_status(state: ThreadState, seen: _Seen, polling: Polling) -> tuple[ThreadState, list[NewNotice]]:
    """Records and announces the job's status, unless the thread was told of it last."""
    job, before, told = seen.job, seen.before, _told(state, seen.before)
    news = []
    if before is None and not job.ended:
        started = JobStarted(job.id, job.repository or "", job.ref or "", job.model or "")
        news.append(NewNotice(JobStarted.KEY, started, polling.hold_back))
    starts_at_work, message = before is None and job.status == ACTIVE, _news_of(state, seen, told)
    is_first = _key(state, message) not in state.announcements.announced
    if not starts_at_work and _is_news(state, seen, polling, is_first=is_first):
        key = next(key for nth in count(1) if (key := _key(state, message, nth)) not in state.announcements.announced)
        held_back = 0.0 if message.ends_work else polling.hold_back
        news.append(NewNotice(key, message, held_back))
    if news or job.status != told:
        last = job.status if news else told
        state = replace(state, announcements=replace(state.announcements, last_status=last))
    if polling.posts is PostMode.ENDS:
        news = [notice for notice in news if notice.message.ends_work]
    return state, news


def _told(state: ThreadState, before: Job | None) -> str:
    """Returns the status of which the thread was told last."""
    last = state.announcements.last_status
    if last is None:
        last = before.status if before else ""
    return last


def _is_news(state: ThreadState, seen: _Seen, polling: Polling, *, is_first: bool) -> bool:
    """Returns whether to announce a status. One that comes back within a round, and work or an end that was not seen to
    follow from a message, are announced once they have lasted.
    """
    job, before = seen.job, seen.before
    if is_first and _ended_unseen(state, seen):
        return True
    if job.status == _told(state, before):
        return False
    has_changed = before is None or job.status != before.status
    resumes = before is not None and before.ended and not job.ended
    expected = is_first and has_changed and (state.round > 0 or not resumes)
    return expected or seen.now - state.work.changed_at >= polling.hold_back


def _news_of(state: ThreadState, seen: _Seen, told: str) -> JobNews:
    """Returns the message of the job's status."""
    status = seen.job.status
    if status in {COMPLETED, FAILED}:
        return _end(state, seen.job, seen.details)
    if status == ARCHIVED:
        return JobArchived()
    return JobActiveAgain() if status == ACTIVE and told in {"", *TERMINAL} else JobStatusChanged(status)


def _key(state: ThreadState, news: JobNews, nth: int = 1) -> NoticeKey:
    """Returns the key of the job's status, the `nth` time in its round."""
    if isinstance(news, JobStatusChanged):
        return JobStatusChanged.key(state.round, digest(news.status), nth)
    return news.key(state.round, nth)


def _end(state: ThreadState, job: Job, details: JobDetails) -> JobFinished | JobFailed | JobStopped:
    """Returns how a round ended. If the newest change has no pull request yet, a known one belongs to an earlier."""
    pending = details.pull_request is not None and details.pull_request.state is PullRequestState.PENDING
    link, links, people = "" if pending else job.pr_link or "", state.announcements.links, state.people
    new = bool(link) and link not in links
    changed = new and bool(links)
    if job.status == FAILED:
        return JobFailed(link, new, changed, _report(state, details), person_id=people.asker_id)
    report, again = _report(state, details, new_link=new), state.announcements.finished_before
    if people.stopped_by:
        return JobStopped(people.stopped_by, link, new, changed, report)
    return JobFinished(link, new, changed, report, again, person_id=people.asker_id)


def _announce_link(state: ThreadState, job: Job, news: Sequence[NewNotice]) -> tuple[ThreadState, list[NewNotice]]:
    """Records a new link. It gets a message of its own, unless the message about the end contains it."""
    if job.pr_link is None or job.pr_link in state.announcements.links:
        return state, []
    alone = job.status == ARCHIVED and not any(map(tells_of_an_end, state.announcements.announced))
    found = PullRequestFound(job.pr_link, changed=bool(state.announcements.links), alone=alone)
    state = replace(state, announcements=replace(state.announcements, links=(*state.announcements.links, job.pr_link)))
    return state, [] if _tell_of_an_end(news) else [NewNotice(PullRequestFound.key(digest(found.link)), found)]


def _note_silence(state: ThreadState, seen: _Seen, polling: Polling) -> list[NewNotice]:
    """Announces that a running job has shown nothing new for a long time, if no other line would."""
    if polling.posts is PostMode.ALL or seen.job.ended or seen.now - state.work.changed_at < polling.silence:
        return []
    silent = NewNotice(JobSilent.key(state.round), JobSilent())
    return [] if silent.key in state.announcements.announced else [silent]


def _note_progress(state: ThreadState, seen: _Seen, card_every: float) -> ThreadState:
    """Records the agent's progress, at most once in `card_every` seconds, because the card is edited each time.
    Progress that comes sooner is left for a later poll, unless the card is edited anyway. Known changes are kept if
    they are not reported.

    A new step of the plan counts as a change of the job, which is then polled more often; a new activity does not.
    """
    progress = progress_of(seen.details, ended=seen.job.ended)
    if progress.changes is None and state.work.progress.changes is not None:
        progress = replace(progress, changes=state.work.progress.changes)
    if progress == state.work.progress:
        return state
    only_further = _results(progress) == _results(state.work.progress) and seen.job == seen.before
    if only_further and seen.now - state.work.progress_at < card_every:
        return state
    changed_at = state.work.changed_at if progress.plan == state.work.progress.plan else seen.now
    return replace(state, work=replace(state.work, progress=progress, progress_at=seen.now, changed_at=changed_at))


def _results(progress: Progress) -> tuple[object, ...]:
    return progress.pull_request, progress.partial_files


def _note_work(state: ThreadState, seen: _Seen) -> ThreadState:
    """Records when the agent was observed to start and to end its newest work."""
    job, before, now = seen.job, seen.before, seen.now
    began, ended = state.work.work_began_at, state.work.work_ended_at
    if before is None:
        began, ended = now, now if job.ended else 0.0
    elif not job.ended:
        began, ended = now if before.ended else began, 0.0
    elif not before.ended:
        ended = now
    elif _ended_unseen(state, seen) or (job.status in {COMPLETED, FAILED} and job.status != before.status):
        began, ended = 0.0, now  # it was never observed running, so its start is unknown
    return replace(state, work=replace(state.work, work_began_at=began, work_ended_at=ended))


def _note_end(state: ThreadState, details: JobDetails) -> ThreadState:
    """Records the mark of an end that is announced now."""
    mark = end_mark(details)
    mark = replace(mark, revision=mark.revision or state.announcements.last_end.revision)
    untold = state.work.question_untold or state.planning.proposal_untold
    asker_id = state.people.asker_id if untold else ""  # whom the question, or the plan, will be for
    return replace(
        state,
        announcements=replace(state.announcements, last_end=mark),
        people=replace(state.people, asker_id=asker_id),
    )


def _note_question(
    state: ThreadState, details: JobDetails, news: Sequence[NewNotice]
) -> tuple[ThreadState, list[NewNotice]]:
    """Records the agent's question, and announces it unless the message about an end does; that of a muted job, once it
    is no longer muted. After a follow-up was sent, a question is repeated only if the job was observed without it in
    between.
    """
    work = state.work
    if not details.question:
        if work.question or work.question_untold or work.answered:
            state = replace(state, work=replace(work, question="", question_untold=False, answered=""))
        return state, []
    if not _is_new_question(state, details):
        return state, []
    muted = bool(state.people.muted_by)
    by_end = _tell_of_an_end(notice for notice in news if not muted or announced_though_muted(notice.message))
    words, asked = shortened(details.question, SHOWN_WORDS), digest(details.question)
    notice = NewNotice(
        QuestionAsked.key(state.round, asked),
        QuestionAsked(words, question_form(details.question_fields), person_id=state.people.asker_id),
    )
    work = replace(work, question=asked, question_untold=muted and not by_end, answered="")
    return replace(state, work=work), [] if by_end else [notice]


def _tell_of_an_end(news: Iterable[NewNotice]) -> bool:
    return any(isinstance(notice.message, JobEnd) for notice in news)


def _unchanged(state: ThreadState, details: JobDetails, *, new_link: bool) -> bool | None:
    """Returns whether the job's branch is the same as at the last announced end; None if unknown."""
    before = state.announcements.last_end.revision
    if before and details.revision:
        return before == details.revision and not new_link
    first_round = not state.announcements.finished_before and not state.announcements.links
    if first_round and not new_link and details.changes is not None:
        return details.changes.file_count == 0
    return None


def _ended_unseen(state: ThreadState, seen: _Seen) -> bool:
    """Returns whether a job has ended again since its last announced end, without having been observed running."""
    mark = end_mark(seen.details)
    return seen.job.status in {COMPLETED, FAILED} and bool(mark) and mark != state.announcements.last_end


def _report(state: ThreadState, details: JobDetails, *, new_link: bool = False) -> JobReport | None:
    """Returns the details about a round's end; None if the job API reports none."""
    report = report_of(details, unchanged=_unchanged(state, details, new_link=new_link))
    if not _is_new_question(state, details):
        report = replace(report, question="", question_fields=())
    return None if report == JobReport() else report


def _is_new_question(state: ThreadState, details: JobDetails) -> bool:
    asked, work = digest(details.question) if details.question else "", state.work
    return bool(asked) and (
        asked not in {work.question, work.answered} or (work.question_untold and asked == work.question)
    )


def _shown(state: ThreadState) -> tuple[object, ...]:
    """Returns what the card shows."""
    failure, work = state.failure, state.work
    problem = failure.problem, failure.problem_text, failure.problem_until
    plan = state.planning.proposal_id, state.planning.proposal_end
    return state.job, *problem, *plan, work.progress, bool(work.question), work.work_began_at, work.work_ended_at


_EVER = 1e9
"""Seconds: longer than anything is held back."""


def never_has_consequences(state: ThreadState, seen: JobObserved, now: float, polling: Polling) -> bool:
    """Returns whether an observation at this time has no consequences, now or later, except for the next poll.

    Consequences that depend only on time, like progress that was held back, appear at some moment and then remain. So
    an observation without consequences in the far future has none until then.
    """
    decision = decide(state, seen, now + _EVER, polling)
    return not decision.notices and not decision.card_changed and decision.state == state
