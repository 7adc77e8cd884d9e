"""The files of a message (docs.slack.dev, "File object")."""

import re
from typing import Any

from bot.domain.context.slack_files import MOST_FILES, FileMode, SlackFile
from bot.runtime.json_fields import objects_at, text_at
from bot.runtime.misleading_characters import displayable
from bot.slack.rendering.text import safe_url

_FILE_ID = re.compile(r"F[A-Z0-9]{1,30}")
_MIME_TYPE = re.compile(r"[a-z0-9.+\-]{1,60}/[a-z0-9.+\-]{1,100}")
_LONGEST_NAME = 200
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
    return " ".join(name.split())[:_LONGEST_NAME]


def _mode(file: Any) -> FileMode:
    mode = text_at(file, "mode") or FileMode.HOSTED.value
    return FileMode(mode) if mode in set(FileMode) else FileMode.OTHER


def _size(file: Any) -> int:
    size = file.get("size") if isinstance(file, dict) else None
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else 0
