"""The context of a request in parts: the Slack thread, and each file. A fetched part is kept until all are there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.domain.context.slack_files import FileProblem, QuotedFile, SlackFile, ThreadMessage
from bot.domain.context.thread_context import Room, WrittenFile, file_reference, files_section
from bot.domain.requests.request import Request, RequestContext
from bot.jobapi.models import PromptFile

PATIENCE = 180.0
"""Seconds after Slack's first failure until a request is sent without the missing parts."""


@dataclass(frozen=True)
class ThreadPart:
    """The messages of a Slack thread to include: those after one `ts` and before another; empty: no bound."""

    thread_ts: str
    after_ts: str = ""
    before_ts: str = ""


@dataclass(frozen=True)
class FetchedThread:
    """Messages of a Slack thread, oldest first; None: Slack does not return them."""

    part: ThreadPart
    messages: tuple[ThreadMessage, ...] | None


@dataclass(frozen=True)
class FetchedFile:
    """A file as the message described it, and as it was fetched."""

    file: SlackFile
    found: QuotedFile


@dataclass(frozen=True)
class FetchedParts:
    """The parts fetched so far. `failing_since` is when fetching one first failed (on the store's clock); None:
    never.
    """

    thread: FetchedThread | None = None
    files: tuple[FetchedFile, ...] = ()
    failing_since: float | None = None

    def of(self, part: ThreadPart | None, files: Sequence[SlackFile]) -> "FetchedParts":
        """Returns the parts that still belong to a request, whose message may have been edited meanwhile."""
        thread = self.thread if self.thread is not None and self.thread.part == part else None
        return replace(self, thread=thread, files=tuple(each for each in self.files if each.file in files))

    def found(self, file: SlackFile) -> QuotedFile | None:
        """Returns a fetched file; None if it is not there yet."""
        return next((each.found for each in self.files if each.file == file), None)

    def missing(self, files: Sequence[SlackFile]) -> tuple[SlackFile, ...]:
        """Returns the files that are not there yet, each once."""
        return tuple(file for file in dict.fromkeys(files) if self.found(file) is None)

    def lasted(self, now: float) -> bool:
        """Returns whether Slack has been failing for longer than PATIENCE."""
        return self.failing_since is not None and now - self.failing_since >= PATIENCE


@dataclass(frozen=True)
class FileOutcome:
    """The outcome of uploading a file: the job API of `project` has it, or there is a `problem`."""

    uploaded: PromptFile | None = None
    problem: FileProblem | None = None
    project: str = ""


@dataclass(frozen=True)
class SettledFile:
    """A file, and the outcome of uploading it."""

    file: SlackFile
    outcome: FileOutcome

    @property
    def quote(self) -> QuotedFile:
        """The file as it is described in the request."""
        return QuotedFile(self.file, sent_along=self.outcome.uploaded is not None, problem=self.outcome.problem)


def with_files(context: RequestContext | None, settled: Sequence[SettledFile], project: str) -> RequestContext | None:
    """Returns a request's context for a project once the outcome of each of its files is known; None if another
    project's job API has one of them.
    """
    if any(each.outcome.project not in {"", project} for each in settled):
        return None
    context = context or RequestContext()
    told, _ = files_section([WrittenFile(each.quote, file_reference(each.file), "") for each in settled], Room(0))
    uploaded = tuple(each.outcome.uploaded for each in settled if each.outcome.uploaded is not None)
    text = "\n\n".join(filter(None, (context.text, told)))
    return replace(context, text=text, files=(*context.files, *uploaded), files_of=project if uploaded else "")


def files_reach(request: Request, project: str) -> bool:
    """Returns whether the job API of a project has the files of a request, if there are any."""
    return request.context is None or request.context.files_of in {"", project}
