"""The files that people upload, within limits."""

import mimetypes
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from bot.workspace.model.entities import File
from bot.workspace.model.errors import SlackError

MAX_FILE_BYTES = 2 << 20
MAX_FILES = 10
"""In a message."""
MAX_STORED_BYTES = 256 << 20
MAX_NAME = 255
_UNKNOWN = "application/octet-stream"


@dataclass(frozen=True)
class Upload:
    """A file to upload. Without a type, the type is guessed from the name."""

    name: str
    content: bytes = b""
    mimetype: str | None = None


class FileStore:
    """Files and their content, by id.

    Args:
        now: The clock, in seconds since 1970.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._files: dict[str, File] = {}
        self._contents: dict[str, bytes] = {}

    def add(self, user: str, upload: Upload) -> File:
        """Stores a new file.

        Raises:
            SlackError: ``invalid_name``, ``file_too_large`` or ``storage_limit_reached``.
        """
        name = upload.name.replace("/", "_").strip()
        if not name or len(name) > MAX_NAME:
            raise SlackError("invalid_name")
        if len(upload.content) > MAX_FILE_BYTES:
            raise SlackError("file_too_large")
        if sum(map(len, self._contents.values())) + len(upload.content) > MAX_STORED_BYTES:
            raise SlackError("storage_limit_reached")
        mimetype = upload.mimetype or mimetypes.guess_type(name)[0] or _UNKNOWN
        new_id, size = f"F{uuid4().hex[:10].upper()}", len(upload.content)
        file = File(new_id, name, mimetype, size, user, int(self._now()))
        self._files[file.id], self._contents[file.id] = file, upload.content
        return file

    def get(self, file_id: str) -> File | None:
        return self._files.get(file_id)

    def content(self, file_id: str) -> bytes:
        """Returns the content of a stored file."""
        return self._contents[file_id]
