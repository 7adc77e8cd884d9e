"""What goes along with a request, part by part: the Slack thread, and each file. A part that was fetched is kept till
the others are there, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.domain.context.slack_files import QuotedFile, SlackFile
from bot.domain.context.thread_messages import ThreadMessage

PATIENCE = 180.0
"""Seconds from the first failure of Slack on after which a request goes without what Slack does not give."""


@dataclass(frozen=True)
class ThreadPart:
    """Which messages of a Slack thread go along: those after one `ts` and before another, each empty for no bound."""

    thread_ts: str
    after_ts: str = ""
    before_ts: str = ""


@dataclass(frozen=True)
class FetchedThread:
    """Messages of a Slack thread, oldest first; None: Slack does not show them."""

    part: ThreadPart
    messages: tuple[ThreadMessage, ...] | None


@dataclass(frozen=True)
class FetchedFile:
    """A file as the message named it, and as it was found to be."""

    file: SlackFile
    found: QuotedFile


@dataclass(frozen=True)
class FetchedParts:
    """The parts that are there. `failing_since` is when one could not be had for the first time (on the store's clock);
    None: none failed.
    """

    thread: FetchedThread | None = None
    files: tuple[FetchedFile, ...] = ()
    failing_since: float | None = None

    def of(self, part: ThreadPart | None, files: Sequence[SlackFile]) -> "FetchedParts":
        """Those that still belong to a request, whose message may have been edited meanwhile."""
        thread = self.thread if self.thread is not None and self.thread.part == part else None
        return replace(self, thread=thread, files=tuple(each for each in self.files if each.file in files))

    def found(self, file: SlackFile) -> QuotedFile | None:
        """A file as it was found to be; None where it is not there."""
        return next((each.found for each in self.files if each.file == file), None)

    def missing(self, files: Sequence[SlackFile]) -> tuple[SlackFile, ...]:
        """The files that are not there, each once."""
        return tuple(file for file in dict.fromkeys(files) if self.found(file) is None)

    def lasted(self, now: float) -> bool:
        """Whether Slack has had its time."""
        return self.failing_since is not None and now - self.failing_since >= PATIENCE
