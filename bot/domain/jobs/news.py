"""Decides what to announce after a poll of a job, and what the card shows. Pure.

All functions also work if the job API reports no details.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count

from bot.domain.delivery import announced_though_muted
from bot.domain.jobs.job import (
    ACTIVE,
    ARCHIVED,
    COMPLETED,
    FAILED,
    SHOWN_WORDS,
    JobReport,
    Progress,
    digest,
    end_mark,
    progress_of,
    question_form,
    report_of,
)
from bot.domain.jobs.poll_pace import Polling
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

_NOTHING_TOLD = JobReport()
JobNews = JobFinished | JobFailed | JobStopped | JobArchived | JobActiveAgain | JobStatusChanged
"""What can be said of a job's status."""


def note_observed(
    state: ThreadState, before: Job | None, details: JobDetails, now: float, polling: Polling
) -> tuple[ThreadState, list[NewNotice]]:
    """Records and announces what a poll shows of `state.job`. `before` is the previous observation."""
    state = _note_progress(state, details, now, polling.card_every, other_news=state.job != before)
    state = _note_work(state, before, details, now)
    state, news = _note_status(state, before, details, now, polling)
    news += _note_silence(state, now, polling)
    if news:
        announced = state.announcements.announced | {notice.key for notice in news}
        state = replace(state, announcements=replace(state.announcements, announced=announced))
    state, link = _announce_link(state, news)
    state, question = _note_question(state, details, news)
    return _note_end(state, details, news), news + link + question


def _note_status(
    state: ThreadState, before: Job | None, details: JobDetails, now: float, polling: Polling
) -> tuple[ThreadState, list[NewNotice]]:
    """Records and announces the job's status, unless the thread was told of it last. `before` is the previous
    observation.
    """
    job, told = state.job, _told(state, before)
    if job is None:
        return state, []
    news = []
    if before is None and not job.ended:
        started = JobStarted(job.id, job.repository or "", job.ref or "", job.model or "")
        news.append(NewNotice(JobStarted.KEY, started, polling.hold_back))
    starts_at_work, message = before is None and job.status == ACTIVE, _news_of(state, details, told)
    is_first = _key(state, message) not in state.announcements.announced
    if not starts_at_work and _is_news(state, before, details, now, polling, is_first=is_first):
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


def _is_news(
    state: ThreadState,
    before: Job | None,
    details: JobDetails,
    now: float,
    polling: Polling,
    *,
    is_first: bool,
) -> bool:
    """Returns whether to announce a status. One that comes back within a round, and work or an end that was not seen to
    follow from a message, are announced once they have lasted.
    """
    job, told = state.job, _told(state, before)
    if job is None or (is_first and _ended_unseen(state, details)):
        return job is not None
    if job.status == told:
        return False
    has_changed = before is None or job.status != before.status
    resumes = before is not None and before.ended and not job.ended
    expected = is_first and has_changed and (state.round > 0 or not resumes)
    return expected or now - state.work.changed_at >= polling.hold_back


def _news_of(state: ThreadState, details: JobDetails, told: str) -> JobNews:
    """Returns the message of the job's status."""
    status = state.job.status if state.job else ""
    if status in {COMPLETED, FAILED}:
        return _end(state, details)
    if status == ARCHIVED:
        return JobArchived()
    return JobActiveAgain() if status == ACTIVE and told in {"", *TERMINAL} else JobStatusChanged(status)


def _key(state: ThreadState, news: JobNews, nth: int = 1) -> NoticeKey:
    """Returns the key of the job's status, the `nth` time in its round."""
    if isinstance(news, JobStatusChanged):
        return JobStatusChanged.key(state.round, news.status, nth)
    return news.key(state.round, nth)


def _end(state: ThreadState, details: JobDetails) -> JobFinished | JobFailed | JobStopped:
    """Returns how a round ended. If the newest change has no pull request yet, a known one belongs to an earlier."""
    pending = details.pull_request is not None and details.pull_request.state is PullRequestState.PENDING
    link, links, people = "", state.announcements.links, state.people
    if state.job is not None and state.job.pr_link and not pending:
        link = state.job.pr_link
    new = bool(link) and link not in links
    changed = new and bool(links)
    if state.job is not None and state.job.status == FAILED:
        return JobFailed(link, new, changed, _report(state, details), person_id=people.asker_id)
    report, again = _report(state, details, new_link=new), state.announcements.finished_before
    if people.stopped_by:
        return JobStopped(people.stopped_by, link, new, changed, report)
    return JobFinished(link, new, changed, report, again, person_id=people.asker_id)


def _announce_link(state: ThreadState, news: list[NewNotice]) -> tuple[ThreadState, list[NewNotice]]:
    """Records a new link. It gets a message of its own, unless the message about the end contains it."""
    job = state.job
    if job is None or job.pr_link is None or job.pr_link in state.announcements.links:
        return state, []
    alone = job.status == ARCHIVED and not any(map(tells_of_an_end, state.announcements.announced))
    found = PullRequestFound(job.pr_link, changed=bool(state.announcements.links), alone=alone)
    state = replace(state, announcements=replace(state.announcements, links=(*state.announcements.links, job.pr_link)))
    return state, [] if _tell_of_an_end(news) else [NewNotice(PullRequestFound.key(found.link), found)]


def _note_silence(state: ThreadState, now: float, polling: Polling) -> list[NewNotice]:
    """Announces that a running job has shown nothing new for a long time, if no other line would."""
    at_work = state.job is not None and not state.job.ended
    if polling.posts is PostMode.ALL or not at_work or now - state.work.changed_at < polling.silence:
        return []
    silent = NewNotice(JobSilent.key(state.round), JobSilent())
    return [] if silent.key in state.announcements.announced else [silent]


def _note_progress(
    state: ThreadState, details: JobDetails, now: float, card_every: float, *, other_news: bool
) -> ThreadState:
    """Records the agent's progress, at most once in `card_every` seconds, because the card is edited each time.
    Progress that comes sooner is left for a later poll. `other_news`: the card is edited anyway. Known changes are kept
    if they are not reported.

    A new step of the plan counts as a change of the job, which is then polled more often; a new activity does not.
    """
    progress = progress_of(details, ended=state.job is not None and state.job.ended)
    if progress.changes is None and state.work.progress.changes is not None:
        progress = replace(progress, changes=state.work.progress.changes)
    if progress == state.work.progress:
        return state
    only_further = _results(progress) == _results(state.work.progress) and not other_news
    if only_further and now - state.work.progress_at < card_every:
        return state
    changed_at = state.work.changed_at if progress.plan == state.work.progress.plan else now
    return replace(state, work=replace(state.work, progress=progress, progress_at=now, changed_at=changed_at))


def _results(progress: Progress) -> tuple[object, ...]:
    return progress.pull_request, progress.partial_files


def _note_work(state: ThreadState, before: Job | None, details: JobDetails, now: float) -> ThreadState:
    """Records when the agent was observed to start and to end its newest work. `before` is the previous observation."""
    job = state.job
    if job is None:
        return state
    began, ended = state.work.work_began_at, state.work.work_ended_at
    if before is None:
        began, ended = now, now if job.ended else 0.0
    elif not job.ended:
        began, ended = now if before.ended else began, 0.0
    elif not before.ended:
        ended = now
    elif _ended_unseen(state, details):
        began, ended = 0.0, now  # it was never observed running, so its start is unknown
    if (began, ended) == (state.work.work_began_at, state.work.work_ended_at):
        return state
    return replace(state, work=replace(state.work, work_began_at=began, work_ended_at=ended))


def _note_end(state: ThreadState, details: JobDetails, news: Sequence[NewNotice]) -> ThreadState:
    """Records the mark of an end that is announced now."""
    if not _tell_of_an_end(news):
        return state
    mark = end_mark(details)
    mark = replace(mark, revision=mark.revision or state.announcements.last_end.revision)
    asker_id = state.people.asker_id if state.work.question_untold else ""  # whom the question will be for
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


def _ended_unseen(state: ThreadState, details: JobDetails) -> bool:
    """Returns whether a job has ended again since its last announced end, without having been observed running."""
    mark, has_ended = end_mark(details), state.job is not None and state.job.status in {COMPLETED, FAILED}
    return has_ended and bool(mark) and mark != state.announcements.last_end


def _report(state: ThreadState, details: JobDetails, *, new_link: bool = False) -> JobReport | None:
    """Returns the details about a round's end; None if the job API reports none."""
    report = report_of(details, unchanged=_unchanged(state, details, new_link=new_link))
    if not _is_new_question(state, details):
        report = replace(report, question="", question_fields=())
    return None if report == _NOTHING_TOLD else report


def _is_new_question(state: ThreadState, details: JobDetails) -> bool:
    asked, work = digest(details.question) if details.question else "", state.work
    return bool(asked) and (
        asked not in {work.question, work.answered} or (work.question_untold and asked == work.question)
    )
