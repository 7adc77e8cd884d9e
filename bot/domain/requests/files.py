"""The files that go to the job API itself, before the request that they belong to. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.domain.context.sections import Room, WrittenFile, file_reference, files_section
from bot.domain.context.slack_files import FileProblem, QuotedFile, SlackFile
from bot.domain.requests.request import Request, RequestContext, UploadedFile


@dataclass(frozen=True)
class FileOutcome:
    """What became of a file that was to be uploaded: the job API of `project` has it, or the agent does not get it."""

    uploaded: UploadedFile | None = None
    problem: FileProblem | None = None
    project: str = ""


@dataclass(frozen=True)
class SettledFile:
    """A file, and what became of it."""

    file: SlackFile
    outcome: FileOutcome

    @property
    def quote(self) -> QuotedFile:
        """The file as it stands beside the request."""
        return QuotedFile(self.file, sent_along=self.outcome.uploaded is not None, problem=self.outcome.problem)


def with_files(context: RequestContext | None, settled: Sequence[SettledFile], project: str) -> RequestContext | None:
    """Returns what goes along with a request for a project once it is known of each of its files what became of it;
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
