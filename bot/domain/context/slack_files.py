"""What people attach to their words in Slack: files, and messages of others that they forward. What is here is what an
event carries: a reference to the file, which is read later.
"""

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.domain.context.message_text import mentioned, with_names
from bot.runtime.text import displayable, without_last_word

MOST_FILES, MOST_FORWARDED = 20, 10
"""How many of them one message's are kept."""
MOST_CHARACTERS = 20_000
"""Of one forwarded message; the rest is cut off."""
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
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as UTF-16's does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Control characters, but for spaces, and the one that colours begin with in the output of commands."""
_TEXT_ALL_THE_SAME = frozenset({"image/svg+xml", "video/mp2t"})
"""The second is what Slack takes a TypeScript file for, by its ending."""


class FileMode(StrEnum):
    """How Slack keeps a file (docs.slack.dev, "File object")."""

    HOSTED = "hosted"
    SNIPPET = "snippet"
    EXTERNAL = "external"
    """Somewhere else: Slack has a link to it only."""
    OTHER = "other"


@dataclass(frozen=True)
class SlackFile:
    """A file in Slack. `size` is in bytes, 0 where Slack does not say; `url` is where it can be read with our token,
    `permalink` where people see it; each can be empty. `must_look_up`: Slack tells all that only when it is asked.
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
        """Whether it is worth reading; whether it is text, its bytes tell."""
        if self.mode is FileMode.EXTERNAL:
            return False
        return self.mimetype in _TEXT_ALL_THE_SAME or not self.mimetype.startswith(_NEVER_TEXT)


@dataclass(frozen=True)
class ForwardedMessage:
    """Somebody's message that another person passed on, or linked to. `author` is a name, or, like whoever `text`
    mentions, a marked mention (bot.domain.context.message_text). Every field can be empty.
    """

    author: str
    text: str
    url: str = ""
    files: tuple[SlackFile, ...] = ()


@dataclass(frozen=True)
class FileContent:
    """A file's bytes as Slack gave them, or their beginning where it is not `complete`."""

    data: bytes
    mimetype: str
    complete: bool = True


class FileProblem(StrEnum):
    """Why the agent does not get a file."""

    REFUSED = "refused"
    """Slack does not give it: it was deleted, or Pagehand may not read it."""
    ELSEWHERE = "elsewhere"
    """It is not at Slack."""
    TOO_LARGE = "too_large"
    NOT_TAKEN = "not_taken"
    """The project's job API does not take it."""
    UNANSWERED = "unanswered"
    """Slack did not give it for minutes."""


@dataclass(frozen=True)
class QuotedFile:
    """A file beside a request. `text` is its content, or the beginning of it where it is not `complete`; None where the
    file is no text, or there is a `problem`. `sent_along`: the agent gets the file itself.
    """

    file: SlackFile
    text: str | None = None
    complete: bool = True
    sent_along: bool = False
    problem: FileProblem | None = None


def quoted(file: SlackFile, content: FileContent) -> QuotedFile:
    """Returns the file with its text as people see it, where its bytes are text that people could read. Of a beginning,
    the last word is left out: a secret that was cut in two is not known for one.
    """
    text = decoded(content.data, complete=content.complete)
    if text is None:
        return QuotedFile(file)
    shown = displayable(text)
    return QuotedFile(file, shown if content.complete else without_last_word(shown), complete=content.complete)


def decoded(data: bytes, *, complete: bool = True) -> str | None:
    """Returns the text that bytes are, or the beginning of it, by their byte order mark, or else as UTF-8, or else as
    Latin-1; None where that has characters that no text has.
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
    """UTF-16 without a mark: every other byte of what is mostly Latin letters is zero."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    if max(even, odd) * 4 < len(data) or min(even, odd):
        return None
    return "utf-16-le" if odd else "utf-16-be"


@dataclass(frozen=True)
class LinkPreview:
    """What Slack, or an app, shows under a message: of a page that it links to, for instance. All can be empty."""

    title: str
    text: str
    url: str = ""


@dataclass(frozen=True)
class ThreadMessage:
    """A message of a thread; `ts` is its own. `author` is a name, or, like whoever the texts mention, a marked mention
    (bot.domain.context.message_text).
    """

    author: str
    text: str
    ts: str
    files: tuple[SlackFile, ...] = ()
    forwarded: tuple[ForwardedMessage, ...] = ()
    previews: tuple[LinkPreview, ...] = ()


def people_in(messages: Sequence[ThreadMessage], forwarded: Sequence[ForwardedMessage] = ()) -> tuple[str, ...]:
    """Returns the ids of those who wrote the messages, or are mentioned in them, each once."""
    inside = [share for message in messages for share in message.forwarded]
    texts = [text for message in messages for text in (message.author, message.text)]
    texts += [text for share in (*inside, *forwarded) for text in (share.author, share.text)]
    texts += [preview.text for message in messages for preview in message.previews]
    return tuple(dict.fromkeys(user_id for text in texts for user_id in mentioned(text)))


def with_known_names(message: ThreadMessage, names: Mapping[str, str]) -> ThreadMessage:
    """Returns the message with names (by id) in the place of mentions; where there is none, the id."""
    return replace(
        message,
        author=_person(message.author, names),
        text=with_names(message.text, names),
        forwarded=tuple(forwarded_with_names(share, names) for share in message.forwarded),
        previews=tuple(replace(preview, text=with_names(preview.text, names)) for preview in message.previews),
    )


def forwarded_with_names(share: ForwardedMessage, names: Mapping[str, str]) -> ForwardedMessage:
    """Returns the forwarded message with names in the place of mentions."""
    return replace(share, author=_person(share.author, names), text=with_names(share.text, names))


def _person(author: str, names: Mapping[str, str]) -> str:
    return with_names(author, names).removeprefix("@") if mentioned(author) else author
