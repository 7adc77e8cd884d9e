"""What each notice says: what happened, what it means, what to do next. Pure.

Each function below is one part of a single `match` over all kinds of messages: the type checker names one that is
missing.
"""

from typing import assert_never

from bot.domain.notices.messages import (
    ActionAnswered,
    AnswerRequested,
    CardChanged,
    CardNotPosted,
    HelpRequested,
    JobIdRequested,
    Notice,
    NoticeMessage,
    PostNotDelivered,
    ProjectAsked,
    PromptRequested,
    ReactionChanged,
    ReplyEdited,
    ReplyHeld,
    RequestRefused,
    StatusRequested,
)
from bot.domain.notices.posts import (
    AccessDenied,
    ContextCut,
    JobActiveAgain,
    JobArchived,
    JobDisappeared,
    JobFailed,
    JobFinished,
    JobNews,
    JobStarted,
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
from bot.domain.threads import Thread
from bot.slack.rendering import (
    job_notices,
    job_report,
    personal_notices,
    question_notices,
    reply_notices,
    request_notices,
)
from bot.slack.rendering.blocks import MAX_REASON, Message, paragraph
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import shorten


def messages(thread: Thread, notice: Notice, message_context: MessageContext) -> list[Message]:
    """What to say, in as many messages as it takes (one, but for a whole prompt)."""
    made = _messages(thread, notice.message, message_context)
    return [message.without_blocks() for message in made] if notice.without_blocks else made


def _messages(thread: Thread, message: NoticeMessage, message_context: MessageContext) -> list[Message]:
    match message:
        case PromptRequested():
            made = personal_notices.whole_prompt(message)
        case AnswerRequested():
            made = personal_notices.whole_answer(message)
        case PostNotDelivered():
            post = _post(thread, message.post, message_context)
            made = [personal_notices.in_doubt(post) if message.may_be_posted else post]
        case CardNotPosted():
            made = [personal_notices.card_not_posted(thread, message, message_context)]
        case ActionAnswered():
            made = [personal_notices.answer(message)]
        case JobIdRequested():
            made = [personal_notices.job_id(thread)]
        case RequestRefused() | ReplyHeld() | ProjectAsked() | StatusRequested() | HelpRequested():
            made = [question_notices.question(thread, message, message_context)]
        case ReplyEdited():
            made = [reply_notices.edited(message)]
        case CardChanged() | ReactionChanged():
            raise ValueError(f"{message.kind} is no message of its own")
        case _:
            made = [_post(thread, message, message_context)]
    return made


def _post(thread: Thread, post: Post, message_context: MessageContext) -> Message:
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
            made = reply_notices.not_fully_sent(post)
        case ContextCut():
            made = reply_notices.context_cut(post)
        case QuestionAsked():
            made = job_report.question_asked(thread, post)
        case UnknownNotice():
            made = _unknown(post)
        case _:
            made = _job_news(thread, post, message_context)
    return made


def _job_news(thread: Thread, news: JobNews, message_context: MessageContext) -> Message:
    match news:
        case JobStarted():
            made = job_notices.started(news)
        case JobActiveAgain():
            made = job_notices.active_again()
        case JobFinished():
            made = job_notices.finished(thread, news)
        case PullRequestFound():
            made = job_notices.pull_request_found(thread, news)
        case JobFailed():
            made = job_notices.failed(thread, news, message_context)
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
    return paragraph(shorten(held, MAX_REASON) or "News.")
