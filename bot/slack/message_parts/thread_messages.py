"""A message of a thread, as it becomes context for the agent."""

import re

from bot.domain.context.message_text import mention
from bot.domain.context.slack_files import ThreadMessage
from bot.runtime.text import displayable
from bot.slack.message_parts.attachments import files_of, forwarded_of, previews_of, recorded_text, unread_parts
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.message_parts.written_words import message_text

_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")
_WRITTEN_BY_SOMEBODY = frozenset({"", "bot_message", "file_share", "me_message", "thread_broadcast"})
"""Subtypes of messages that people and apps write; the others report events, such as somebody joining."""
_MAX_NAME = 80


def thread_message(message: SlackMessage) -> ThreadMessage | None:
    """Returns a message with its author and mentions marked (bot.domain.context.message_text). None for a message
    that nobody wrote, and for an empty one.
    """
    if not message.ts or message.subtype not in _WRITTEN_BY_SOMEBODY:
        return None
    read = ThreadMessage(
        author=_author(message),
        text=recorded_text(message_text(message)),
        ts=message.ts,
        files=(*files_of(message), *unread_parts(message)),
        forwarded=forwarded_of(message),
        previews=previews_of(message),
    )
    return read if read.text or read.files or read.forwarded or read.previews else None


def _author(message: SlackMessage) -> str:
    """Returns a marked mention of the person, or the name of the app."""
    app = message.username or message.bot_profile.name
    if app or not _PERSON.fullmatch(message.user):
        return " ".join(displayable(app).split())[:_MAX_NAME]
    return mention(message.user)
