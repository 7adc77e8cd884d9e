"""A message of a thread, as it becomes context."""

import re
from typing import Any

from bot.domain.context.message_text import beginning, mention
from bot.domain.context.slack_files import MOST_CHARACTERS, ThreadMessage
from bot.runtime.json_fields import objects_at, text_at
from bot.runtime.text import displayable, whole_words
from bot.slack.message_parts.attachments import block_text, files_of, forwarded_of, previews_of, recorded_text

_TS = re.compile(r"\d{1,20}\.\d{6}")
_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")
_SAID_BY_SOMEBODY = frozenset({"", "bot_message", "file_share", "me_message", "thread_broadcast"})
"""Subtypes of messages that people and apps write; the others tell what happened, like that somebody joined."""
_LONGEST_NAME = 80


def thread_message(message: Any) -> ThreadMessage | None:
    """Returns a message with its author and whom it mentions marked (bot.domain.context.message_text).
    None for one that nobody wrote, and for one that says nothing.
    """
    ts, subtype = text_at(message, "ts"), message.get("subtype") if isinstance(message, dict) else None
    if not _TS.fullmatch(ts) or (subtype is not None and subtype not in _SAID_BY_SOMEBODY):
        return None
    read = ThreadMessage(
        author=_author(message),
        text=_words(message),
        ts=ts,
        files=files_of(message),
        forwarded=forwarded_of(message),
        previews=previews_of(message),
    )
    return read if read.text or read.files or read.forwarded or read.previews else None


def _words(message: Any) -> str:
    """Returns what people read: an app's `text` may be no more than a summary of its blocks."""
    text, blocks = recorded_text(text_at(message, "text")), objects_at(message, "blocks")
    if text and not text_at(message, "bot_id"):
        return text
    return max(text, beginning(whole_words(block_text(blocks), MOST_CHARACTERS), MOST_CHARACTERS), key=len)


def _author(message: Any) -> str:
    """Returns a marked mention of the person, or the name that an app goes by."""
    user_id = text_at(message, "user")
    app = text_at(message, "username") or text_at(message, "bot_profile", "name")
    if app or not _PERSON.fullmatch(user_id):
        return " ".join(displayable(app).split())[:_LONGEST_NAME]
    return mention(user_id)
