"""What goes along with a request, part by part: the Slack thread, and each file. A part that was fetched is kept till
the others are there, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.domain.context.slack_files import FileProblem, QuotedFile, SlackFile, ThreadMessage
from bot.domain.context.thread_context import Room, WrittenFile, file_reference, files_section
from bot.domain.requests.request import Request, RequestContext, UploadedFile

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


@dataclass(frozen=True)
class FileOutcome:
    """The outcome of uploading a file: the job API of `project` has it, or the agent does not get it."""

    uploaded: UploadedFile | None = None
    problem: FileProblem | None = None
    project: str = ""


@dataclass(frozen=True)
class SettledFile:
    """A file, and the outcome of uploading it."""

    file: SlackFile
    outcome: FileOutcome

    @property
    def quote(self) -> QuotedFile:
        """The file as it stands beside the request."""
        return QuotedFile(self.file, sent_along=self.outcome.uploaded is not None, problem=self.outcome.problem)


def with_files(context: RequestContext | None, settled: Sequence[SettledFile], project: str) -> RequestContext | None:
    """Returns what goes along with a request for a project once the outcome of each of its files is known;
    None where another project's job API has one of them.
    """
    if any(each.outcome.project not in {"", project} for each in settled):
        return None
    context = context or RequestContext()
    told, _ = files_section([WrittenFile(each.quote, file_reference(each.file), "") for each in settled], Room(0))
    uploaded = tuple(each.outcome.uploaded for each in settled if each.outcome.uploaded is not None)
    text = "\n\n".join(filter(None, (context.text, told)))
    return replace(context, text=text, files=(*context.files, *uploaded), files_of=project if uploaded else "")


def files_reach(request: Request, project: str) -> bool:
    """Whether the job API of a project has the files of a request, if there are any."""
    return request.context is None or request.context.files_of in {"", project}
