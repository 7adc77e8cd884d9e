"""What a person's message holds besides its words."""

from typing import Any

from bot.domain.context.slack_files import SlackFile
from bot.domain.requests.request import Attachments
from bot.runtime.json_fields import text_at
from bot.slack.message_parts.attachments import files_of, only_forwarded_of


def attachments_of(message: dict[str, Any]) -> Attachments:
    """Returns the files and the forwarded messages. A link with a preview is among the words already."""
    return Attachments(_files(message), only_forwarded_of(message))


def _files(message: dict[str, Any]) -> tuple[SlackFile, ...]:
    """Where Slack says that there is a file, and does not tell which, there is one without a name."""
    if "files" not in message and text_at(message, "subtype") == "file_share":
        return (SlackFile("", ""),)
    return files_of(message)
