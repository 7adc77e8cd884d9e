"""What a person's message holds besides its words."""

from typing import Any

from bot.domain.requests import Attachments
from bot.domain.slack_files import ForwardedMessage, SlackFile
from bot.runtime.json_fields import objects_at, text_at
from bot.slack.rendering.text import displayable

MOST_FILES = 100


def attachments_of(message: dict[str, Any]) -> Attachments:
    """Returns the files and whether there is a forwarded message. A link with a preview is among the words already."""
    shared = [item for item in objects_at(message, "attachments") if item.get("is_share") is True]
    previews = [item for item in objects_at(message, "attachments") if item.get("is_msg_unfurl") is True]
    has_text = bool(text_at(message, "text").strip())
    forwarded = shared or ([] if has_text else previews)
    messages = [ForwardedMessage(text_at(item, "author_id"), displayable(text_at(item, "text"))) for item in forwarded]
    return Attachments(tuple(SlackFile("", name) for name in _file_names(message)), tuple(messages))


def _file_names(message: dict[str, Any]) -> tuple[str, ...]:
    """A deleted file stays in the list as a tombstone."""
    if "files" not in message and message.get("subtype") == "file_share":
        return ("",)
    files = [file for file in objects_at(message, "files") if file.get("mode") != "tombstone"]
    return tuple(displayable(text_at(file, "name") or text_at(file, "title")) for file in files[:MOST_FILES])
