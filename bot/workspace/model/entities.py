"""The workspace's entities: plain data with Slack's ids, names and timestamps, within its limits, and its errors.

A timestamp is also a message's id.
"""

import mimetypes
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import uuid4

from bot.runtime.pictures import picture_type


class SlackError(Exception):
    """A refused call.

    Args:
        code: Slack's error code, such as ``channel_not_found``.
        detail: More fields of the answer, such as ``needed`` and ``provided``.
        messages: Sentences for ``response_metadata.messages``, without the prefix ``[ERROR]``.
    """

    def __init__(self, code: str, *, detail: dict[str, Any] | None = None, messages: list[str] | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail or {}
        self.messages = messages or []

    def response_body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"ok": False, "error": self.code, **self.detail}
        if self.messages:
            body["response_metadata"] = {"messages": [f"[ERROR] {text}" for text in self.messages]}
        return body


Json = dict[str, Any]
ChangeKind = Literal[
    "message_posted",
    "message_changed",
    "message_deleted",
    "ephemeral_shown",
    "reaction_added",
    "reaction_removed",
    "member_joined",
    "member_left",
    "channel_created",
    "channel_archived",
    "channel_unarchived",
    "home_opened",
]


@dataclass(frozen=True)
class Team:
    id: str
    name: str
    domain: str


@dataclass(frozen=True)
class User:
    """A user of the workspace or of another team that shares a channel with it. Bots are users, too."""

    id: str
    name: str
    real_name: str
    team_id: str
    color: str = "4a5568"
    is_bot: bool = False
    is_admin: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False

    @property
    def is_guest(self) -> bool:
        """Whether they see only some channels: a multi-channel or single-channel guest."""
        return self.is_restricted or self.is_ultra_restricted


@dataclass(frozen=True)
class UserGroup:
    """A user group, mentioned by its handle; ``users`` are ids."""

    id: str
    handle: str
    name: str
    users: tuple[str, ...] = ()


@dataclass
class Channel:
    """A conversation: public, private, or direct (then ``user`` is the person who talks with the bot)."""

    id: str
    name: str
    created: int
    creator: str
    is_private: bool = False
    is_im: bool = False
    is_ext_shared: bool = False
    is_archived: bool = False
    topic: str = ""
    user: str | None = None
    members: list[str] = field(default_factory=list)

    @property
    def scope_family(self) -> str:
        """The first half of the scopes for this kind of conversation, as in ``groups:history``."""
        if self.is_im:
            return "im"
        return "groups" if self.is_private else "channels"


@dataclass(frozen=True)
class File:
    """An uploaded file. `FileStore` has its content.

    Args:
        id: Slack's id, such as ``F0123ABCD``.
        name: Its name when it was uploaded.
        mimetype: As given by the uploader or guessed from the name; an app's, by its content.
        size: In bytes.
        uploader: The app's user id; empty for a person's.
        known_at: When Slack knows the type of an app's file.
    """

    id: str
    name: str
    mimetype: str
    size: int
    uploader: str = ""
    known_at: float = 0.0


@dataclass
class Message:
    """A message as Slack stores it: ``text`` is escaped, ``blocks`` are only an app's own.

    ``ephemeral_to`` is the only person who sees it; such a message is in no history.
    """

    channel: str
    ts: str
    user: str
    text: str
    blocks: list[Json] | None = None
    attachments: list[Json] | None = None
    thread_ts: str | None = None
    subtype: str | None = None
    bot_id: str | None = None
    app_id: str | None = None
    client_msg_id: str | None = None
    metadata: Json | None = None
    files: list[File] | None = None
    inviter: str | None = None
    edited_by: str | None = None
    edited_ts: str | None = None
    ephemeral_to: str | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_reply(self) -> bool:
        return self.thread_ts is not None and self.thread_ts != self.ts


@dataclass(frozen=True)
class Change:
    """Something that happened in a workspace.

    Args:
        kind: What happened.
        channel: Where; a channel id.
        actor: Who did it; a user id.
        at: When, as a Slack timestamp that is unique in the workspace.
        message: The message, after the change.
        previous: The message before a change or deletion.
        name: A reaction's name, or the name of the App Home tab that was opened.
        inviter: Who invited a new member.
    """

    kind: ChangeKind
    channel: str
    actor: str
    at: str
    message: Message | None = None
    previous: Message | None = None
    name: str = ""
    inviter: str | None = None


Observer = Callable[[Change], None]
_TIMESTAMP = re.compile(r"\d{1,12}\.\d{1,6}", re.ASCII)


class Timestamps:
    """Issues unique, increasing timestamps in seconds and microseconds, such as ``1700000000.000100``."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last = 0

    def next(self) -> str:
        self._last = max(int(self._now() * 1_000_000), self._last + 1)
        return timestamp_of(self._last)


def is_timestamp(text: str) -> bool:
    return _TIMESTAMP.fullmatch(text) is not None


def microseconds(ts: str) -> int:
    """Returns a timestamp in microseconds. Other text raises ValueError."""
    seconds, _, fraction = ts.partition(".")
    return int(seconds) * 1_000_000 + int(fraction.ljust(6, "0")[:6] or 0)


def timestamp_of(moment: int) -> str:
    """Returns the timestamp for microseconds since 1970."""
    return f"{moment // 1_000_000}.{moment % 1_000_000:06d}"


MAX_FILE_BYTES = 5 << 20
MAX_FILES = 10
"""In a message."""
MAX_STORED_BYTES = 256 << 20
MAX_NAME = 255
_UNKNOWN = "application/octet-stream"
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif"})
"""Those that blocks can show."""


@dataclass(frozen=True)
class Upload:
    """A file to upload. Without a type, the type is guessed from the name."""

    name: str
    content: bytes = b""
    mimetype: str | None = None


def _new_id() -> str:
    return f"F{uuid4().hex[:10].upper()}"


class FileStore:
    """Files and their content, by id."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._files: dict[str, File] = {}
        self._contents: dict[str, bytes] = {}
        self._expected: dict[str, Upload] = {}
        self.seconds_to_know = 0.3
        """How long Slack takes to know the type of an app's file."""

    def add(self, upload: Upload) -> File:
        """Stores a new file.

        Raises:
            SlackError: ``invalid_name``, ``file_too_large`` or ``storage_limit_reached``.
        """
        return self._store(self._checked(upload), upload)

    def _checked(self, upload: Upload) -> File:
        name = upload.name.replace("/", "_").strip()
        if not name or len(name) > MAX_NAME:
            raise SlackError("invalid_name")
        if len(upload.content) > MAX_FILE_BYTES:
            raise SlackError("file_too_large")
        if sum(map(len, self._contents.values())) + len(upload.content) > MAX_STORED_BYTES:
            raise SlackError("storage_limit_reached")
        mimetype = upload.mimetype or mimetypes.guess_type(name)[0] or _UNKNOWN
        return File(_new_id(), name, mimetype, len(upload.content))

    def _store(self, file: File, upload: Upload) -> File:
        self._files[file.id], self._contents[file.id] = file, upload.content
        return file

    def expect(self, name: str, length: int) -> str:
        """Returns the id for a file that the app is going to upload. Raises SlackError."""
        if not length:
            raise SlackError("missing_argument")
        if length > MAX_FILE_BYTES:
            raise SlackError("file_upload_size_restricted")
        file_id = _new_id()
        self._expected[file_id] = Upload(name, bytes(length))
        return file_id

    def receive(self, file_id: str, content: bytes) -> None:
        """Takes the content of an expected file. Raises SlackError."""
        expected = self._expected.get(file_id)
        if expected is None or len(expected.content) != len(content):
            raise SlackError("file_not_found" if expected is None else "length_differs")
        self._expected[file_id] = replace(expected, content=content, mimetype=picture_type(content) or _UNKNOWN)

    def complete(self, file_id: str, uploader: str) -> File:
        """Stores an expected file whose content has come, which can be done once. Raises SlackError."""
        upload = self._expected.pop(file_id, None)
        if upload is None or upload.mimetype is None:
            raise SlackError("file_not_found")
        known_at = self._now() + self.seconds_to_know
        return self._store(replace(self._checked(upload), id=file_id, uploader=uploader, known_at=known_at), upload)

    def kind(self, file: File) -> str:
        """Returns a file's type as far as Slack knows it."""
        return file.mimetype if file.known_at <= self._now() else ""

    def get(self, file_id: str) -> File | None:
        return self._files.get(file_id)

    def content(self, file_id: str) -> bytes:
        """Returns the content of a stored file."""
        return self._contents[file_id]
