"""What Slack shows under a message's own words: messages that were forwarded or linked to, and previews of links.

Source: payloads of Slack's that others recorded; its reference tells only of the attachments that apps write
(docs.slack.dev, "Secondary message attachments"). A forwarded message has `is_share`, a linked one `is_msg_unfurl`.
"""

import re
from collections.abc import Iterator
from typing import Any

from bot.domain.context.message_text import beginning, mention, unescape_keeping_mentions
from bot.domain.context.slack_files import (
    MOST_CHARACTERS,
    MOST_FILES,
    MOST_FORWARDED,
    FileMode,
    ForwardedMessage,
    LinkPreview,
    SlackFile,
)
from bot.runtime.json_fields import objects_at, text_at
from bot.runtime.text import displayable, whole_words
from bot.slack.rendering.text import safe_url

_DEEPEST = 10
_PARTS = ("title", "text", "fields", "elements", "rows")
_SIGNS = {"user": "@", "channel": "#", "usergroup": "!subteam^"}
_ON_ONE_LINE = frozenset({"rich_text_section", "rich_text_preformatted", "rich_text_quote"})


def block_text(blocks: list[dict[str, Any]]) -> str:
    """Returns what people read in the blocks, with marked mentions: a line for each part."""
    return "\n".join(filter(None, (_text(block, _DEEPEST) for block in blocks)))


def _text(part: dict[str, Any], depth: int) -> str:
    words = _own_words(part)
    if words is not None or not depth:
        return words or ""
    between = "" if text_at(part, "type") in _ON_ONE_LINE else "\n"
    return between.join(filter(None, (_text(child, depth - 1) for key in _PARTS for child in _objects(part.get(key)))))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields what stands under a key: an object, a list of them, or the rows of a table."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield item
        elif isinstance(item, list):
            yield from (cell for cell in item if isinstance(cell, dict))


def _own_words(part: dict[str, Any]) -> str | None:
    """Returns what a part says by itself; None where it only holds others."""
    text = text_at(part, "text")
    match text_at(part, "type"):
        case "mrkdwn" | "markdown":
            return unescape_keeping_mentions(displayable(text))
        case "text" | "plain_text":
            return displayable(text)
        case "link":
            return displayable(text or text_at(part, "url"))
        case "user" | "channel" | "usergroup" as kind:
            return unescape_keeping_mentions(f"<{_SIGNS[kind]}{text_at(part, f'{kind}_id')}>")
        case "emoji":
            return displayable(f":{text_at(part, 'name')}:")
        case _:
            return None


# The files of a message (docs.slack.dev, "File object").

_FILE_ID = re.compile(r"F[A-Z0-9]{1,30}")
_MIME_TYPE = re.compile(r"[a-z0-9.+\-]{1,60}/[a-z0-9.+\-]{1,100}")
_LONGEST_FILE_NAME = 200
_DELETED = "tombstone"
"""A deleted file stays in its message."""


def files_of(message: Any) -> tuple[SlackFile, ...]:
    """Returns the files of a message, or of an attachment that holds some."""
    files = [file for file in objects_at(message, "files") if file.get("mode") != _DELETED]
    return tuple(read_file(file) for file in files[:MOST_FILES])


def read_file(file: Any) -> SlackFile:
    """Returns a file as Slack describes it."""
    file_id, mimetype, mode = text_at(file, "id"), text_at(file, "mimetype").lower(), _mode(file)
    address = safe_url(text_at(file, "url_private_download")) or safe_url(text_at(file, "url_private")) or ""
    elsewhere = mode is FileMode.EXTERNAL
    return SlackFile(
        id=file_id if _FILE_ID.fullmatch(file_id) else "",
        name=_name(file),
        mimetype=mimetype if _MIME_TYPE.fullmatch(mimetype) else "",
        size=_size(file),
        url="" if elsewhere else address,
        permalink=safe_url(text_at(file, "permalink")) or (address if elsewhere else ""),
        mode=mode,
        must_look_up=text_at(file, "file_access") == "check_file_info",
    )


def _name(file: Any) -> str:
    name = displayable(text_at(file, "name") or text_at(file, "title"))
    return " ".join(name.split())[:_LONGEST_FILE_NAME]


def _mode(file: Any) -> FileMode:
    mode = text_at(file, "mode") or FileMode.HOSTED.value
    return FileMode(mode) if mode in set(FileMode) else FileMode.OTHER


def _size(file: Any) -> int:
    size = file.get("size") if isinstance(file, dict) else None
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else 0


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
