"""What people attach to their words in Slack: files, and messages of others that they forward. What is here is what an
event carries: a reference to the file, which is read later.
"""

import codecs
from dataclasses import dataclass
from enum import StrEnum

from bot.runtime.misleading_characters import displayable

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
    mentions, a marked mention (bot.domain.mentions). Every field can be empty.
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
    """Returns the file with its text as people see it, where its bytes are UTF-8 that people could read."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        text = decoder.decode(content.data, final=content.complete)
    except UnicodeDecodeError:
        return QuotedFile(file)
    return QuotedFile(file) if "\0" in text else QuotedFile(file, displayable(text), complete=content.complete)
