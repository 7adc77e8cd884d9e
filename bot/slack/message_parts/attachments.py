"""What Slack shows under a message's own words: messages that were forwarded or linked to, and previews of links.

Source: payloads of Slack's that others recorded; its reference tells only of the attachments that apps write
(docs.slack.dev, "Secondary message attachments"). A forwarded message has `is_share`, a linked one `is_msg_unfurl`.
"""

import re
from typing import Any

from bot.domain.context.cutting import whole_words
from bot.domain.context.message_text import beginning, mention, unescape_keeping_mentions
from bot.domain.context.slack_files import MOST_CHARACTERS, MOST_FORWARDED, ForwardedMessage, LinkPreview
from bot.runtime.json_fields import objects_at, text_at
from bot.runtime.misleading_characters import displayable
from bot.slack.message_parts.block_text import block_text
from bot.slack.message_parts.files import files_of
from bot.slack.rendering.text import safe_url

MOST_PREVIEWS = 10
_LONGEST_NAME = 200
_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")


def forwarded_of(message: Any) -> tuple[ForwardedMessage, ...]:
    """Returns the messages that a message passes on or links to."""
    return tuple(_forwarded(found) for found in _messages(message)[:MOST_FORWARDED])


def only_forwarded_of(message: Any) -> tuple[ForwardedMessage, ...]:
    """Returns the messages that a message passes on. One that its words link to, and that Slack shows some time after
    it was written, is not among them, unless there are no words.
    """
    has_words = bool(text_at(message, "text").strip())
    found = [attachment for attachment in _messages(message) if attachment.get("is_share") is True or not has_words]
    return tuple(_forwarded(attachment) for attachment in found[:MOST_FORWARDED])


def _messages(message: Any) -> list[dict[str, Any]]:
    return [attachment for attachment in objects_at(message, "attachments") if is_message(attachment)]


def previews_of(message: Any) -> tuple[LinkPreview, ...]:
    """Returns the other attachments: previews of links, and what apps write there."""
    found = [_preview(attachment) for attachment in objects_at(message, "attachments") if not is_message(attachment)]
    return tuple(preview for preview in found if preview.title or preview.text)[:MOST_PREVIEWS]


def is_message(attachment: dict[str, Any]) -> bool:
    """Returns whether an attachment is somebody's message."""
    return attachment.get("is_share") is True or attachment.get("is_msg_unfurl") is True


def recorded_text(text: str) -> str:
    """Returns a text of Slack's as it is recorded: cleaned, in words, with marked mentions, and bounded."""
    shown = unescape_keeping_mentions(displayable(whole_words(text, 4 * MOST_CHARACTERS)))
    return beginning(whole_words(shown, MOST_CHARACTERS), MOST_CHARACTERS)


def _forwarded(attachment: dict[str, Any]) -> ForwardedMessage:
    return ForwardedMessage(
        author=_author(attachment),
        text=_words(attachment),
        url=safe_url(text_at(attachment, "from_url")) or "",
        files=files_of(attachment),
    )


def _preview(attachment: dict[str, Any]) -> LinkPreview:
    return LinkPreview(
        title=_one_line(text_at(attachment, "title") or text_at(attachment, "service_name")),
        text=_words(attachment),
        url=safe_url(text_at(attachment, "from_url")) or safe_url(text_at(attachment, "title_link")) or "",
    )


def _author(attachment: dict[str, Any]) -> str:
    author_id = text_at(attachment, "author_id")
    return mention(author_id) if _PERSON.fullmatch(author_id) else _one_line(text_at(attachment, "author_name"))


def _words(attachment: dict[str, Any]) -> str:
    """Returns what people read of an attachment; its fallback is for clients that cannot show it."""
    fields = ((text_at(field, "title"), text_at(field, "value")) for field in objects_at(attachment, "fields"))
    texts = (text_at(attachment, "pretext"), text_at(attachment, "text"), *(": ".join(filter(None, f)) for f in fields))
    told = recorded_text("\n".join(filter(None, texts)))
    return told or _block_words(attachment) or recorded_text(text_at(attachment, "fallback"))


def _block_words(attachment: dict[str, Any]) -> str:
    blocks = objects_at(attachment, "blocks")
    for message_blocks in objects_at(attachment, "message_blocks"):
        message = message_blocks.get("message")
        blocks += objects_at(message, "blocks")
    return beginning(whole_words(block_text(blocks), MOST_CHARACTERS), MOST_CHARACTERS)


def _one_line(text: str) -> str:
    line = " ".join(unescape_keeping_mentions(displayable(whole_words(text, 10 * _LONGEST_NAME))).split())
    return whole_words(line, _LONGEST_NAME)
