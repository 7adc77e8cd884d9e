"""Messages about a job: its start, its ends, its pull requests. Pure."""

from typing import assert_never

from bot.domain.jobs.details import JobReport
from bot.domain.jobs.job import ACTIVE
from bot.domain.notification import NotificationSettings, person_mentioned
from bot.domain.threads.thread import Thread
from bot.notices.job import (
    AgentAskedToStop,
    HistoryUnread,
    JobActiveAgain,
    JobArchived,
    JobDisappeared,
    JobFailed,
    JobFinished,
    JobSilent,
    JobStarted,
    JobStatusChanged,
    JobStillStopping,
    JobStopped,
    PullRequestFound,
    QuestionAsked,
    RecordDamaged,
)
from bot.slack.rendering.blocks import OPEN_PULL_REQUEST, Block, ChatMessage, link_button, paragraph
from bot.slack.rendering.card_buttons import discard_button
from bot.slack.rendering.job_report import (
    count_changed,
    question_asked,
    reason_after,
    reason_quoted,
    reply_here,
    with_report,
)
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import Markup, addressing, day_and_time, joined, link, one_line, person, safe_url
from bot.slack.rendering.words import job_news as words

JobNews = (
    JobStarted
    | JobActiveAgain
    | JobStatusChanged
    | JobSilent
    | JobFinished
    | JobFailed
    | JobStopped
    | JobStillStopping
    | AgentAskedToStop
    | QuestionAsked
    | PullRequestFound
    | JobArchived
    | JobDisappeared
    | HistoryUnread
    | RecordDamaged
)
_NOTHING_TOLD = JobReport()


def about_job(  # noqa: C901, PLR0912 - a branch for each kind
    thread: Thread, news: JobNews, notification: NotificationSettings, message_context: MessageContext
) -> ChatMessage:
    """Returns a message about the thread's job."""
    match news:
        case JobFinished() | JobFailed() | JobStopped():
            made = _ended(thread, news, person_mentioned(thread, news, notification), message_context)
        case JobStillStopping():
            made = paragraph(words.STILL_STOPPING(who=person(news.person_id)))
        case AgentAskedToStop():
            made = paragraph(words.AGENT_ASKED_TO_STOP(who=person(news.person_id)))
        case QuestionAsked():
            made = question_asked(thread, news)
        case PullRequestFound():
            made = _pull_request_found(news, person_mentioned(thread, news, notification))
        case JobStarted():
            made = paragraph(words.STARTED)
        case JobActiveAgain():
            made = paragraph(words.AT_WORK_AGAIN)
        case JobStatusChanged(status):
            made = paragraph(words.AT_WORK if status == ACTIVE else words.OTHER_STATUS(status=one_line(status, 100)))
        case JobSilent():
            made = paragraph(words.STILL_AT_WORK)
        case JobArchived():
            made = paragraph(words.ARCHIVED(slash=message_context.slash))
        case JobDisappeared():
            made = paragraph(words.DISAPPEARED(slash=message_context.slash))
        case HistoryUnread():
            made = paragraph(words.HISTORY_UNREAD(since=day_and_time(news.since), until=day_and_time(news.until)))
        case RecordDamaged():
            made = paragraph(words.RECORD_DAMAGED(slash=message_context.slash))
        case _:
            assert_never(news)
    return made


def _ended(
    thread: Thread, end: JobFinished | JobFailed | JobStopped, told: str, message_context: MessageContext
) -> ChatMessage:
    """Returns the message about an end: the outcome, the pull request, the size of the change, and the agent's words.

    `told` is whom it mentions; empty: nobody.
    """
    report = end.report or _NOTHING_TOLD
    match end:
        case JobFinished():
            said = _finished(end, report)
        case JobFailed():
            said = _failed(thread, end, report, message_context)
        case JobStopped():
            said = _stopped(thread, end, report, told)
        case _:
            assert_never(end)
    who = addressing([told] if told and not _names(end, told) else [])
    count = [count_changed(report.changes)] if end.link else []
    text = joined([Markup(f"{who}{said[0]}"), *said[1:], *(each for each in count if each)], by="\n")
    buttons = (*_open_button(end.link), *([discard_button(thread)] if report.partial_files else []))
    return with_report(thread, paragraph(text, *buttons), end.report)


def _names(end: JobFinished | JobFailed | JobStopped, told: str) -> bool:
    """Whether a message mentions somebody by what it says."""
    return isinstance(end, JobStopped) and end.person_id == told


def _finished(end: JobFinished, report: JobReport) -> list[Markup]:
    """The lines, as of the others."""
    if report.unchanged:
        as_it_was = [words.PULL_REQUEST_AS_IT_WAS(link=link(end.link))] if end.link else []
        return [*_because(words.NOTHING_CHANGED, words.NOTHING_CHANGED_BECAUSE, report), *as_it_was]
    if not end.link:
        return _because(words.DONE_WITHOUT_PULL_REQUEST, words.DONE_WITHOUT_PULL_REQUEST_BECAUSE, report)
    reason = [reason_quoted(report)] if report.reason else []
    return [_with_pull_request(end, report), *reason]


def _with_pull_request(end: JobFinished, report: JobReport) -> Markup:
    found = link(end.link)
    if end.new and end.changed:
        return words.DONE_WITH_NEW_PULL_REQUEST(link=found)
    if end.new or (report.unchanged is None and not end.again):
        return words.DONE(link=found)
    if report.unchanged is False:
        return words.DONE_PULL_REQUEST_UPDATED(link=found)
    return words.DONE_CHECK_PULL_REQUEST(link=found)


def _failed(thread: Thread, end: JobFailed, report: JobReport, message_context: MessageContext) -> list[Markup]:
    reply, slash = reply_here(thread), message_context.slash
    so_far = _so_far(end)
    if report.partial_files:
        return [
            *_because(words.FAILED_UNEXPLAINED, words.FAILED_BECAUSE, report),
            _kept(thread, report.partial_files),
            *so_far,
        ]
    reason = reason_after(words.FAILED_BECAUSE, report)
    if not reason:
        return [words.FAILED(reply=reply, slash=slash), *so_far]
    return [words.FAILED_BECAUSE, reason, words.TRY_AGAIN(reply=reply, slash=slash), *so_far]


def _kept(thread: Thread, files: int) -> Markup:
    """Returns in how many files the work of a failed job is kept, and what can be done with it."""
    reply = reply_here(thread)
    return words.ONE_FILE_KEPT(reply=reply) if files == 1 else words.FILES_KEPT(count=files, reply=reply)


def _stopped(thread: Thread, end: JobStopped, report: JobReport, told: str) -> list[Markup]:
    who = person(end.person_id)
    plain, because = words.STOPPED(who=who), words.STOPPED_BECAUSE(who=who)
    if told and told != end.person_id:  # the one mention is for somebody else
        plain, because = words.STOPPED_BY_ANOTHER, words.STOPPED_BY_ANOTHER_BECAUSE
    rest = _so_far(end) if end.link else [words.GO_ON(reply=reply_here(thread))]
    return [*_because(plain, because, report), *rest]


def _so_far(end: JobFailed | JobStopped) -> list[Markup]:
    if not end.link:
        return []
    if end.new:
        return [_found(end.link, changed=end.changed)]
    return [words.PULL_REQUEST_SO_FAR(link=link(end.link))]


def _because(plain: Markup, because: Markup, report: JobReport) -> list[Markup]:
    reason = reason_after(because, report)
    return [because, reason] if reason else [plain]


def _pull_request_found(message: PullRequestFound, told: str) -> ChatMessage:
    found = _found(message.link, changed=message.changed)
    return paragraph(f"{addressing([told] if told else [])}{found}", *_open_button(message.link))


def _found(found: str, *, changed: bool) -> Markup:
    return words.NEW_PULL_REQUEST(link=link(found)) if changed else words.PULL_REQUEST(link=link(found))


def _open_button(found: str) -> tuple[Block, ...]:
    url = safe_url(found)
    return (link_button(words.OPEN_PULL_REQUEST, OPEN_PULL_REQUEST, url),) if url else ()
