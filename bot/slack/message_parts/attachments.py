"""What a message contains besides its own text: blocks, files, forwarded and linked messages, link previews.

Slack documents only the attachments that apps write (docs.slack.dev, "Secondary message attachments"); the others are
known from recorded payloads. A forwarded message has `is_share`, a linked one `is_msg_unfurl`.
"""

import re
from collections.abc import Sequence

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
from bot.domain.requests.request import Attachments
from bot.runtime.text import displayable, whole_words
from bot.slack.message_parts.slack_message import BlockPart, MessageAttachment, MessageFile, SlackMessage
from bot.slack.rendering.text import safe_url

_MAX_DEPTH = 10
_ON_ONE_LINE = frozenset({"rich_text_section", "rich_text_preformatted", "rich_text_quote"})


def block_text(blocks: Sequence[BlockPart]) -> str:
    """Returns the text that people see in the blocks, one line for each part, with mentions marked."""
    return "\n".join(filter(None, (_text(block, _MAX_DEPTH) for block in blocks)))


def _text(part: BlockPart, depth: int) -> str:
    words = _own_words(part)
    if words is not None or not depth:
        return words or ""
    between = "" if part.type in _ON_ONE_LINE else "\n"
    children = (*part.title, *part.text_parts, *part.fields, *part.elements, *part.rows)
    return between.join(filter(None, (_text(child, depth - 1) for child in children)))


def _own_words(part: BlockPart) -> str | None:
    """Returns the text of the part itself; None if it only contains other parts."""
    match part.type:
        case "mrkdwn" | "markdown":
            words = unescape_keeping_mentions(displayable(part.text))
        case "text" | "plain_text":
            words = displayable(part.text)
        case "link":
            words = displayable(part.text or part.url)
        case "user":
            words = unescape_keeping_mentions(f"<@{part.user_id}>")
        case "channel":
            words = unescape_keeping_mentions(f"<#{part.channel_id}>")
        case "usergroup":
            words = unescape_keeping_mentions(f"<!subteam^{part.usergroup_id}>")
        case "emoji":
            words = displayable(f":{part.name}:")
        case _:
            return None
    return words


# The files of a message (docs.slack.dev, "File object").

_FILE_ID = re.compile(r"F[A-Z0-9]{1,30}")
_MIME_TYPE = re.compile(r"[a-z0-9.+\-]{1,60}/[a-z0-9.+\-]{1,100}")
_MAX_FILE_NAME = 200
_DELETED = "tombstone"
"""A deleted file stays in its message."""
_FILE_SHARE = "file_share"


def attachments_of(message: SlackMessage) -> Attachments:
    """Returns the files and forwarded messages that are sent along with a message. The text already holds links that
    have a preview. If Slack says that there is a file but not which one, it is a file without a name.
    """
    files = files_of(message)
    if message.files is None and message.subtype == _FILE_SHARE:
        files = (SlackFile("", ""),)
    return Attachments(files, only_forwarded_of(message))


def files_of(holder: SlackMessage | MessageAttachment) -> tuple[SlackFile, ...]:
    """Returns the files of a message or an attachment."""
    files = [file for file in holder.files or () if file.mode != _DELETED]
    return tuple(read_file(file) for file in files[:MOST_FILES])


def read_file(file: MessageFile) -> SlackFile:
    """Returns a file as Slack describes it."""
    mimetype, mode = file.mimetype.lower(), _mode(file)
    address = safe_url(file.url_private_download) or safe_url(file.url_private) or ""
    is_elsewhere = mode is FileMode.EXTERNAL
    return SlackFile(
        id=file.id if _FILE_ID.fullmatch(file.id) else "",
        name=" ".join(displayable(file.name or file.title).split())[:_MAX_FILE_NAME],
        mimetype=mimetype if _MIME_TYPE.fullmatch(mimetype) else "",
        size=max(file.size, 0),
        url="" if is_elsewhere else address,
        permalink=safe_url(file.permalink) or (address if is_elsewhere else ""),
        mode=mode,
        must_look_up=file.file_access == "check_file_info",
    )


def _mode(file: MessageFile) -> FileMode:
    mode = file.mode or FileMode.HOSTED.value
    return FileMode(mode) if mode in set(FileMode) else FileMode.OTHER


# Forwarded messages and previews.

_MAX_PREVIEWS = 10
_MAX_NAME = 200
_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")


def forwarded_of(message: SlackMessage) -> tuple[ForwardedMessage, ...]:
    """Returns the messages that a message forwards or links to."""
    return tuple(_forwarded(found) for found in _messages(message)[:MOST_FORWARDED])


def only_forwarded_of(message: SlackMessage) -> tuple[ForwardedMessage, ...]:
    """Returns the messages that a message forwards. A message that it links to, which Slack adds some time later, does
    not count, unless there is no text.
    """
    has_words = bool(message.text.strip())
    found = [attachment for attachment in _messages(message) if attachment.is_share or not has_words]
    return tuple(_forwarded(attachment) for attachment in found[:MOST_FORWARDED])


def _messages(message: SlackMessage) -> list[MessageAttachment]:
    return [attachment for attachment in message.attachments if _is_message(attachment)]


def previews_of(message: SlackMessage) -> tuple[LinkPreview, ...]:
    """Returns the other attachments: previews of links, and what apps attach."""
    found = [_preview(attachment) for attachment in message.attachments if not _is_message(attachment)]
    return tuple(preview for preview in found if preview.title or preview.text)[:_MAX_PREVIEWS]


def _is_message(attachment: MessageAttachment) -> bool:
    return attachment.is_share or attachment.is_msg_unfurl


def recorded_text(text: str) -> str:
    """Returns a text of Slack's as it is recorded: unescaped, cleaned and bounded, with mentions marked."""
    shown = unescape_keeping_mentions(displayable(whole_words(text, 4 * MOST_CHARACTERS)))
    return beginning(whole_words(shown, MOST_CHARACTERS), MOST_CHARACTERS)


def recorded_blocks(blocks: Sequence[BlockPart]) -> str:
    """Returns the text of blocks as it is recorded."""
    return beginning(whole_words(block_text(blocks), MOST_CHARACTERS), MOST_CHARACTERS)


def _forwarded(attachment: MessageAttachment) -> ForwardedMessage:
    return ForwardedMessage(
        author=_author(attachment),
        text=_words(attachment),
        url=safe_url(attachment.from_url) or "",
        files=files_of(attachment),
    )


def _preview(attachment: MessageAttachment) -> LinkPreview:
    return LinkPreview(
        title=_one_line(attachment.title or attachment.service_name),
        text=_words(attachment),
        url=safe_url(attachment.from_url) or safe_url(attachment.title_link) or "",
    )


def _author(attachment: MessageAttachment) -> str:
    author_id = attachment.author_id
    return mention(author_id) if _PERSON.fullmatch(author_id) else _one_line(attachment.author_name)


def _words(attachment: MessageAttachment) -> str:
    """Returns the text that people see; the fallback is for clients that cannot show the attachment."""
    fields = (": ".join(filter(None, (field.title, field.value))) for field in attachment.fields)
    text = recorded_text("\n".join(filter(None, (attachment.pretext, attachment.text, *fields))))
    shown_blocks = (block for shown in attachment.message_blocks for block in shown.message.blocks)
    return text or recorded_blocks((*attachment.blocks, *shown_blocks)) or recorded_text(attachment.fallback)


def _one_line(text: str) -> str:
    line = " ".join(unescape_keeping_mentions(displayable(whole_words(text, 10 * _MAX_NAME))).split())
    return whole_words(line, _MAX_NAME)
