"""The context of a request as the agent gets it: the thread that it was written in, forwarded messages, and files."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bot.domain.context.fetched_parts import FetchedParts, ThreadPart
from bot.domain.context.slack_files import FileProblem, ForwardedMessage, QuotedFile, SlackFile, people_in
from bot.domain.context.thread_context import ContextNotes, characters_of, context_text
from bot.domain.requests.request import Request, RequestContext
from bot.notices.requests import ContextCut
from bot.ports.job_api import JobApi
from bot.ports.slack import DisplayNames
from bot.runtime.secrets.masking import SecretMasker
from bot.runtime.text import in_thread_if_long

MAX_SENT_BYTES = 10 * 1024 * 1024
"""Bytes of one file that is uploaded to the job API."""
_UNREAD = "(The thread's messages could not be read.)"


@dataclass(frozen=True)
class Gathered:
    """The context of a request, and what was left out. `to_upload` are files that the job API has to get first.
    `thread_unread`: the thread should be part of the context but could not be read.
    """

    context: RequestContext | None = None
    to_upload: tuple[SlackFile, ...] = ()
    notes: ContextNotes = field(default_factory=ContextNotes)
    masked: tuple[str, ...] = ()
    thread_unread: bool = False

    def told_to(self, person_id: str) -> ContextCut | None:
        """Returns what the person is told about left-out context; None if nothing was."""
        if not (self.notes or self.masked or self.thread_unread):
            return None
        left_out = self.notes.messages_left_out or self.notes.words_left_out
        return ContextCut(
            person_id,
            self.notes.link_only,
            self.notes.cut_files,
            left_out,
            self.masked,
            self.notes.name_only,
            self.thread_unread,
        )


class ContextComposer:
    """Composes the context of requests from fetched parts."""

    def __init__(self, job_api: JobApi, people: DisplayNames | None, masker: SecretMasker) -> None:
        self._job_api = job_api
        self._people = people
        self._masker = masker

    async def compose(self, request: Request, project: str, part: ThreadPart | None, parts: FetchedParts) -> Gathered:
        """Returns the context of a request for a project, with a part of the thread. Parts that could not be fetched
        are mentioned.
        """
        given = given_text(request.context)
        takes_files = self._job_api.takes_files(project)
        quotes = [_treated(file, parts.found(file), takes_files=takes_files) for file in request.attachments.files]
        to_upload, masked = self._without_secrets([quote.file for quote in quotes if quote.sent_along])
        messages = parts.thread.messages if parts.thread is not None else None
        unread = part is not None and messages is None
        quoted, forwarded = [quote for quote in quotes if not quote.sent_along], request.attachments.forwarded
        names = await self._names(forwarded)
        made = await in_thread_if_long(
            characters_of(messages or (), quoted, forwarded),
            lambda: context_text(messages or (), quoted, forwarded, mask=self._masker.mask_together, names=names),
        )
        text = "\n\n".join(filter(None, (given, _UNREAD if unread else "", made.text)))
        context = RequestContext(text, given=given)
        masked = tuple(dict.fromkeys((*made.masked, *masked)))
        return Gathered(context, to_upload, made.notes, masked, thread_unread=unread)

    def _without_secrets(self, files: Sequence[SlackFile]) -> tuple[tuple[SlackFile, ...], tuple[str, ...]]:
        """Returns files with masked names and links, and the kinds of secrets that these contained."""
        masked = self._masker.mask_together([text for file in files for text in (file.name, file.permalink)])
        texts = iter(masked.texts)
        return tuple(replace(file, name=next(texts), permalink=next(texts)) for file in files), masked.kinds

    async def _names(self, forwarded: Sequence[ForwardedMessage]) -> dict[str, str]:
        ids = people_in((), forwarded)
        return dict(await self._people.names(ids)) if ids and self._people is not None else {}


def _treated(file: SlackFile, found: QuotedFile | None, *, takes_files: bool) -> QuotedFile:
    """Returns a file as its text, as a file to upload, or as its link with the reason."""
    if found is None:
        return QuotedFile(file, problem=FileProblem.UNANSWERED)
    if found.text is not None or found.problem is not None:
        return found
    if not takes_files:
        return replace(found, problem=FileProblem.NOT_TAKEN)
    if found.file.size > MAX_SENT_BYTES:
        return replace(found, problem=FileProblem.TOO_LARGE)
    return replace(found, sent_along=True)


def given_text(context: RequestContext | None) -> str:
    """Returns the context that the request's person chose before anything was gathered."""
    if context is None:
        return ""
    return context.text if context.given is None else context.given
