"""What a message contains besides its own words: files, forwarded and linked messages, link previews; and a whole
message as it becomes context for the agent.

Slack documents only the attachments that apps write (docs.slack.dev, "Secondary message attachments"); the others are
known from recorded payloads. A forwarded message has `is_share`, a linked one `is_msg_unfurl`.
"""

import re

from bot.domain import messages
from bot.domain.requests.request import Attachments
from bot.runtime.text import displayable, whole_words
from bot.slack.message_parts.slack_message import MessageAttachment, MessageFile, SlackMessage
from bot.slack.message_parts.written_words import attachment_text, message_text, written_words
from bot.slack.rendering.text import safe_url

# The files of a message (docs.slack.dev, "File object").

_FILE_ID = re.compile(r"F[A-Z0-9]{1,30}")
_MIME_TYPE = re.compile(r"[a-z0-9.+\-]{1,60}/[a-z0-9.+\-]{1,100}")
_MAX_FILE_NAME, _MAX_KIND = 200, 40
_EXTERNAL, _DELETED = "external", "tombstone"
"""Modes of files: Slack only has a link to it; it was deleted, and stays in its message."""


def attachments_of(message: SlackMessage) -> Attachments:
    """Returns the files and forwarded messages that are sent along with a message. The text already holds links that
    have a preview. If Slack says that there is a file but not which one, it is a file without a name.
    """
    files = (*files_of(message), *unread_parts(message))
    if message.files is None and message.subtype == "file_share":
        files = (messages.SlackFile("", ""),)
    return Attachments(files, only_forwarded_of(message))


def unread_parts(message: SlackMessage) -> tuple[messages.SlackFile, ...]:
    """Returns the parts of a message whose words cannot be read: they count as files of which there is only a name."""
    kinds = dict.fromkeys(written_words(message).missing)
    named = (displayable(kind)[:_MAX_KIND].replace("_", " ") for kind in kinds)
    return tuple(messages.SlackFile("", f"a part of the message ({name})") for name in named)[: messages.MOST_FILES]


def files_of(holder: SlackMessage | MessageAttachment) -> tuple[messages.SlackFile, ...]:
    """Returns the files of a message or an attachment."""
    files = [file for file in holder.files or () if file.mode != _DELETED]
    return tuple(read_file(file) for file in files[: messages.MOST_FILES])


def read_file(file: MessageFile) -> messages.SlackFile:
    """Returns a file as Slack describes it."""
    mimetype, elsewhere = file.mimetype.lower(), file.mode == _EXTERNAL
    address = safe_url(file.url_private_download) or safe_url(file.url_private) or ""
    return messages.SlackFile(
        id=file.id if _FILE_ID.fullmatch(file.id) else "",
        name=" ".join(displayable(file.name or file.title).split())[:_MAX_FILE_NAME],
        mimetype=mimetype if _MIME_TYPE.fullmatch(mimetype) else "",
        size=max(file.size, 0),
        url="" if elsewhere else address,
        permalink=safe_url(file.permalink) or (address if elsewhere else ""),
        elsewhere=elsewhere,
        must_look_up=file.file_access == "check_file_info",
    )


# Forwarded messages and previews.

_MAX_NAME = 200
_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")


def forwarded_of(message: SlackMessage) -> tuple[messages.ForwardedMessage, ...]:
    """Returns the messages that a message forwards or links to."""
    return tuple(_forwarded(found) for found in _messages(message)[: messages.MOST_FORWARDED])


def only_forwarded_of(message: SlackMessage) -> tuple[messages.ForwardedMessage, ...]:
    """Returns the messages that a message forwards. A message that it links to, which Slack adds some time later, does
    not count, unless there is no text.
    """
    has_words = bool(message_text(message).strip())
    found = [attachment for attachment in _messages(message) if attachment.is_share or not has_words]
    return tuple(_forwarded(attachment) for attachment in found[: messages.MOST_FORWARDED])


def _messages(message: SlackMessage) -> list[MessageAttachment]:
    return [attachment for attachment in message.attachments if attachment.is_message]


def previews_of(message: SlackMessage) -> tuple[messages.LinkPreview, ...]:
    """Returns the other attachments that are not the author's own: previews of links, and what apps attach to those."""
    others = (attachment for attachment in message.attachments if not (attachment.is_message or attachment.is_own))
    found = [_preview(attachment) for attachment in others]
    return tuple(preview for preview in found if preview.title or preview.text)[:10]


def recorded_text(text: str) -> str:
    """Returns a text of Slack's as it is recorded: unescaped, cleaned and bounded, with mentions marked."""
    shown = messages.unescape_keeping_mentions(displayable(whole_words(text, 4 * messages.MOST_CHARACTERS)))
    return messages.beginning(whole_words(shown, messages.MOST_CHARACTERS), messages.MOST_CHARACTERS)


def _forwarded(attachment: MessageAttachment) -> messages.ForwardedMessage:
    return messages.ForwardedMessage(
        author=_author(attachment),
        text=recorded_text(attachment_text(attachment)),
        url=safe_url(attachment.from_url) or "",
        files=files_of(attachment),
    )


def _preview(attachment: MessageAttachment) -> messages.LinkPreview:
    return messages.LinkPreview(
        title=_one_line(attachment.title or attachment.service_name),
        text=recorded_text(attachment_text(attachment)),
        url=safe_url(attachment.from_url) or safe_url(attachment.title_link) or "",
    )


def _author(attachment: MessageAttachment) -> str:
    author_id = attachment.author_id
    return messages.mention(author_id) if _PERSON.fullmatch(author_id) else _one_line(attachment.author_name)


def _one_line(text: str) -> str:
    line = " ".join(messages.unescape_keeping_mentions(displayable(whole_words(text, 10 * _MAX_NAME))).split())
    return whole_words(line, _MAX_NAME)


_WRITTEN_BY_SOMEBODY = frozenset({"", "bot_message", "file_share", "me_message", "thread_broadcast"})
"""Subtypes of messages that people and apps write; the others report events, such as somebody joining."""


def thread_message(message: SlackMessage) -> messages.ThreadMessage | None:
    """Returns a message with its author and mentions marked (bot.domain.messages). None for a message
    that nobody wrote, and for an empty one.
    """
    if not message.ts or message.subtype not in _WRITTEN_BY_SOMEBODY:
        return None
    read = messages.ThreadMessage(
        author=_writer(message),
        text=recorded_text(message_text(message)),
        ts=message.ts,
        files=(*files_of(message), *unread_parts(message)),
        forwarded=forwarded_of(message),
        previews=previews_of(message),
    )
    return read if read.text or read.files or read.forwarded or read.previews else None


def _writer(message: SlackMessage) -> str:
    """Returns a marked mention of the person, or the name of the app."""
    app = message.username or message.bot_profile.name
    if app or not _PERSON.fullmatch(message.user):
        return " ".join(displayable(app).split())[:80]
    return messages.mention(message.user)
