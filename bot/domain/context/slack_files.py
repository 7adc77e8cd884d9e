"""What people attach in Slack: files, and forwarded messages. An event only has a reference to a file, which is read
later.
"""

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.domain.context.message_text import mentioned, with_names
from bot.runtime.text import displayable, without_last_word

MOST_FILES, MOST_FORWARDED = 20, 10
"""How many of each are kept per message."""
MOST_CHARACTERS = 20_000
"""Characters of a forwarded message; the rest is cut off."""
_NEVER_TEXT = (
    "application/gzip",
    "application/msword",
    "application/pdf",
    "application/vnd.",
    "application/x-7z-compressed",
    "application/x-gzip",
    "application/x-tar",
    "application/zip",
    "audio/",
    "font/",
    "image/",
    "video/",
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # starts like UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Control characters, except white space and ESC, which starts colours in the output of commands."""
_TEXT_ALL_THE_SAME = frozenset({"image/svg+xml", "video/mp2t"})
"""Slack reports TypeScript files as the second, because of their extension."""


class FileMode(StrEnum):
    """How Slack stores a file (docs.slack.dev, "File object")."""

    HOSTED = "hosted"
    SNIPPET = "snippet"
    EXTERNAL = "external"
    """Stored elsewhere: Slack only has a link."""
    OTHER = "other"


@dataclass(frozen=True)
class SlackFile:
    """A file in Slack. `size` is in bytes, 0 if unknown. `url` is for reading it with our token, `permalink` for
    people; each can be empty. `must_look_up`: the event has only the id, and the rest must be requested.
    """

    id: str
    name: str
    mimetype: str = ""
    size: int = 0
    url: str = ""
    permalink: str = ""
    mode: FileMode = FileMode.HOSTED
    must_look_up: bool = False

    @property
    def may_be_text(self) -> bool:
        """Whether it may be text, so that its bytes are worth reading."""
        if self.mode is FileMode.EXTERNAL:
            return False
        return self.mimetype in _TEXT_ALL_THE_SAME or not self.mimetype.startswith(_NEVER_TEXT)


@dataclass(frozen=True)
class ForwardedMessage:
    """A message that another person forwarded, or linked to. `author` is a name or a marked mention, and `text` can
    contain marked mentions (bot.domain.context.message_text). Every field can be empty.
    """

    author: str
    text: str
    url: str = ""
    files: tuple[SlackFile, ...] = ()


@dataclass(frozen=True)
class FileContent:
    """A file's bytes, or only the beginning if not `complete`."""

    data: bytes
    mimetype: str
    complete: bool = True


class FileProblem(StrEnum):
    """Why the agent does not get a file."""

    REFUSED = "refused"
    """Slack refuses it: it was deleted, or Pagehand may not read it."""
    ELSEWHERE = "elsewhere"
    """It is not stored at Slack."""
    TOO_LARGE = "too_large"
    NOT_TAKEN = "not_taken"
    """The project's job API does not accept it."""
    UNANSWERED = "unanswered"
    """Slack failed to deliver it for minutes."""


@dataclass(frozen=True)
class QuotedFile:
    """A file in the context. `text` is its content, or only the beginning if not `complete`; None if it is not text, or
    there is a `problem`. `sent_along`: the agent gets the file itself.
    """

    file: SlackFile
    text: str | None = None
    complete: bool = True
    sent_along: bool = False
    problem: FileProblem | None = None


def quoted(file: SlackFile, content: FileContent) -> QuotedFile:
    """Returns the file with its text, if its bytes are readable text. The last word of an incomplete text is left out,
    because a secret that is cut in two would not be recognized.
    """
    text = decoded(content.data, complete=content.complete)
    if text is None:
        return QuotedFile(file)
    shown = displayable(text)
    return QuotedFile(file, shown if content.complete else without_last_word(shown), complete=content.complete)


def decoded(data: bytes, *, complete: bool = True) -> str | None:
    """Decodes text by its byte order mark, or else as UTF-8 or Latin-1; None if the result contains characters that no
    text has.
    """
    for encoding in _encodings(data):
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            text = decoder.decode(data, final=complete)
        except UnicodeDecodeError:
            continue
        return None if _NO_TEXT.search(text) else text.removeprefix("\ufeff")
    return None


def _encodings(data: bytes) -> tuple[str, ...]:
    marked = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)
    if marked is not None:
        return (marked,)
    return (_unmarked_utf_16(data) or "utf-8", "cp1252", "latin-1")


def _unmarked_utf_16(data: bytes) -> str | None:
    """Decodes UTF-16 without a byte order mark: in mostly Latin text, every other byte is zero."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    if max(even, odd) * 4 < len(data) or min(even, odd):
        return None
    return "utf-16-le" if odd else "utf-16-be"


@dataclass(frozen=True)
class LinkPreview:
    """What Slack or an app shows below a message, such as a preview of a linked page. Every field can be empty."""

    title: str
    text: str
    url: str = ""


@dataclass(frozen=True)
class ThreadMessage:
    """A message of a thread. `author` is a name or a marked mention, and the texts can contain marked mentions
    (bot.domain.context.message_text).
    """

    author: str
    text: str
    ts: str
    files: tuple[SlackFile, ...] = ()
    forwarded: tuple[ForwardedMessage, ...] = ()
    previews: tuple[LinkPreview, ...] = ()


def people_in(messages: Sequence[ThreadMessage], forwarded: Sequence[ForwardedMessage] = ()) -> tuple[str, ...]:
    """Returns the ids of the messages' authors and of everybody they mention, each once."""
    inside = [share for message in messages for share in message.forwarded]
    texts = [text for message in messages for text in (message.author, message.text)]
    texts += [text for share in (*inside, *forwarded) for text in (share.author, share.text)]
    texts += [preview.text for message in messages for preview in message.previews]
    return tuple(dict.fromkeys(user_id for text in texts for user_id in mentioned(text)))


def with_known_names(message: ThreadMessage, names: Mapping[str, str]) -> ThreadMessage:
    """Returns the message with mentions replaced by `names` (by id), or else by the id."""
    return replace(
        message,
        author=_person(message.author, names),
        text=with_names(message.text, names),
        forwarded=tuple(forwarded_with_names(share, names) for share in message.forwarded),
        previews=tuple(replace(preview, text=with_names(preview.text, names)) for preview in message.previews),
    )


def forwarded_with_names(share: ForwardedMessage, names: Mapping[str, str]) -> ForwardedMessage:
    """Returns the forwarded message with mentions replaced by names."""
    return replace(share, author=_person(share.author, names), text=with_names(share.text, names))


def _person(author: str, names: Mapping[str, str]) -> str:
    return with_names(author, names).removeprefix("@") if mentioned(author) else author
