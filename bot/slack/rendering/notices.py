"""The text of each notice: what happened, what it means, and what to do next. Pure."""

from bot.domain.notification import NotificationSettings
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread
from bot.notices.answers import Introduction, PostNotDelivered
from bot.notices.notice import CardChanged, Notice, NoticeContent, ReactionChanged, ToPerson, UnknownNotice
from bot.slack.rendering.blocks import MAX_REASON, OPEN_FORM, ChatMessage, button, paragraph
from bot.slack.rendering.job_notices import JobNews, about_job
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.personal_notices import in_doubt, to_person
from bot.slack.rendering.request_notices import RequestNews, about_request
from bot.slack.rendering.text import escape, joined, shorten
from bot.slack.rendering.words import names
from bot.slack.rendering.words.help import INTRODUCTION, TRY_IT, WORKFLOW_CANNOT_ASK


def messages(
    thread: Thread,
    notice: Notice,
    message_context: MessageContext,
    *,
    follow_ups: FollowUpCounts = NO_FOLLOW_UPS,
    notification: NotificationSettings | None = None,
) -> list[ChatMessage]:
    """Returns the messages of a notice: one, except for long texts that somebody asked to see. Without `notification`,
    the default settings of channels apply.
    """

    def posted(post: NoticeContent) -> ChatMessage:
        if isinstance(post, JobNews):
            return about_job(thread, post, notification or NotificationSettings(), message_context)
        if isinstance(post, RequestNews):
            return about_request(post, message_context)
        if isinstance(post, Introduction):
            return _introduction(post, message_context)
        if isinstance(post, UnknownNotice):
            return _unknown(post)
        raise ValueError(f"{post.kind} is no post")

    match message := notice.message:
        case CardChanged() | ReactionChanged():
            raise ValueError(f"{message.kind} is no message of its own")
        case PostNotDelivered():
            post = posted(message.post)
            made = [in_doubt(post) if message.may_be_posted else post]
        case ToPerson():
            made = to_person(thread, message, follow_ups, message_context)
        case _:
            made = [posted(message)]
    return [each.without_blocks() for each in made] if notice.without_blocks else made


def _introduction(message: Introduction, message_context: MessageContext) -> ChatMessage:
    if message.to_workflow:
        return paragraph(WORKFLOW_CANNOT_ASK(command=escape(message_context.command)))
    lines = [line(bot=message_context.bot, command=escape(message_context.command)) for line in INTRODUCTION]
    return paragraph(joined(lines, "\n"), button(TRY_IT, OPEN_FORM, "start"))


def _unknown(message: UnknownNotice) -> ChatMessage:
    """Shows the content of a notice from a newer version, rather than nothing."""
    held = ", ".join(f"{name}: {value}" for name, value in message.fields.items())
    return paragraph(shorten(held, MAX_REASON) or names.NEWS)
