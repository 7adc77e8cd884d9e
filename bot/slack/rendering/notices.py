"""What each notice says: what happened, what it means, what to do next. Pure.

Each function below is one part of a single `match` over all kinds of messages: the type checker names one that is
missing.
"""

from dataclasses import dataclass
from typing import assert_never

from bot.domain.notices.messages import (
    ActionAnswered,
    AnswerRequested,
    CardChanged,
    CardNotPosted,
    JobIdRequested,
    Notice,
    NoticeMessage,
    PostNotDelivered,
    PromptRequested,
    ReactionChanged,
    ReplyEdited,
    StatusRequested,
)
from bot.domain.notices.notification import NotificationSettings, person_told
from bot.domain.notices.posts import (
    AccessDenied,
    AgentAskedToStop,
    ContextCut,
    JobActiveAgain,
    JobArchived,
    JobDisappeared,
    JobEnd,
    JobFailed,
    JobFinished,
    JobNews,
    JobSilent,
    JobStarted,
    JobStillStopping,
    JobStopped,
    OutageEnded,
    OutageStarted,
    Post,
    PullRequestFound,
    QuestionAsked,
    RecordDamaged,
    ReplyNotFullySent,
    RequestRejected,
    RequestUncertain,
    UnknownNotice,
)
from bot.domain.notices.questions import (
    HelpRequested,
    JobOrReplyAsked,
    ProjectAsked,
    Question,
    ReplyHeld,
    RequestRefused,
    StopAsked,
)
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread
from bot.slack.rendering import job_notices, job_report, personal_notices, request_notices
from bot.slack.rendering.blocks import MAX_REASON, Message, paragraph
from bot.slack.rendering.cards import status_text
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import shorten
from bot.slack.rendering.words import names


@dataclass(frozen=True)
class _Setting:
    """In what a notice is said: in which thread, by which installation, and how its channel wants to be told."""

    thread: Thread
    message_context: MessageContext
    notification: NotificationSettings
    follow_ups: FollowUpCounts


def messages(
    thread: Thread,
    notice: Notice,
    message_context: MessageContext,
    *,
    follow_ups: FollowUpCounts = NO_FOLLOW_UPS,
    notification: NotificationSettings | None = None,
) -> list[Message]:
    """What to say, in as many messages as it takes (one, but for a whole prompt). Without `notification` the channel
    has it as any other.
    """
    setting = _Setting(thread, message_context, notification or NotificationSettings(), follow_ups)
    made = _messages(notice.message, setting)
    return [message.without_blocks() for message in made] if notice.without_blocks else made


def _messages(message: NoticeMessage, setting: _Setting) -> list[Message]:
    thread, message_context = setting.thread, setting.message_context
    match message:
        case PromptRequested():
            made = personal_notices.whole_prompt(message)
        case AnswerRequested():
            made = personal_notices.whole_answer(message)
        case PostNotDelivered():
            post = _post(message.post, setting)
            made = [personal_notices.in_doubt(post) if message.may_be_posted else post]
        case CardNotPosted():
            made = [personal_notices.card_not_posted(thread, message, message_context)]
        case ActionAnswered():
            made = [personal_notices.answer(message, message_context)]
        case JobIdRequested():
            made = [personal_notices.job_id(thread)]
        case (
            RequestRefused()
            | ReplyHeld()
            | JobOrReplyAsked()
            | ProjectAsked()
            | StopAsked()
            | HelpRequested()
            | StatusRequested()
        ):
            made = [_before_sending(message, setting)]
        case ReplyEdited():
            made = [request_notices.edited(message)]
        case CardChanged() | ReactionChanged():
            raise ValueError(f"{message.kind} is no message of its own")
        case _:
            made = [_post(message, setting)]
    return made


def _before_sending(message: Question | StatusRequested, setting: _Setting) -> Message:
    thread, message_context = setting.thread, setting.message_context
    if isinstance(message, StatusRequested):
        return paragraph(status_text(thread, message_context, setting.follow_ups))
    return personal_notices.question(thread, message, message_context)


def _post(post: Post, setting: _Setting) -> Message:
    thread, message_context = setting.thread, setting.message_context
    match post:
        case OutageStarted():
            made = request_notices.outage_started(post)
        case AccessDenied():
            made = request_notices.access_denied(post, message_context)
        case RequestRejected():
            made = request_notices.rejected(post, message_context)
        case RequestUncertain():
            made = request_notices.uncertain(post)
        case ReplyNotFullySent():
            made = request_notices.not_fully_sent(post)
        case ContextCut():
            made = request_notices.context_cut(post)
        case JobFinished() | JobFailed() | JobStopped() | JobStillStopping() | AgentAskedToStop():
            made = _end_news(post, setting)
        case QuestionAsked():
            made = job_report.question_asked(thread, post)
        case UnknownNotice():
            made = _unknown(post)
        case _:
            made = _job_news(post, setting)
    return made


def _end_news(news: JobEnd | JobStillStopping | AgentAskedToStop, setting: _Setting) -> Message:
    match news:
        case JobStillStopping():
            return job_notices.still_stopping(news)
        case AgentAskedToStop():
            return job_notices.agent_asked_to_stop(news)
        case _:
            told = person_told(setting.thread, news, setting.notification)
            return job_notices.ended(setting.thread, news, told, setting.message_context)


def _job_news(news: JobNews, setting: _Setting) -> Message:
    thread, message_context = setting.thread, setting.message_context
    match news:
        case JobStarted():
            made = job_notices.started()
        case JobActiveAgain():
            made = job_notices.active_again()
        case JobSilent():
            made = job_notices.silent()
        case PullRequestFound():
            made = job_notices.pull_request_found(news, person_told(thread, news, setting.notification))
        case JobArchived():
            made = job_notices.archived(message_context)
        case JobDisappeared():
            made = job_notices.disappeared(message_context)
        case RecordDamaged():
            made = job_notices.record_damaged(message_context)
        case OutageEnded():
            made = request_notices.outage_ended(news)
        case _:
            assert_never(news)
    return made


def _unknown(message: UnknownNotice) -> Message:
    """A row that a newer version wrote: says what it holds rather than nothing."""
    held = ", ".join(f"{name}: {value}" for name, value in message.fields.items())
    return paragraph(shorten(held, MAX_REASON) or names.NEWS)
