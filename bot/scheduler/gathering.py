"""Gathers the context of a request: the thread that it was written in, forwarded messages, and files.

It is fetched from Slack part by part: each has its own time limit, and a failure does not stop the others.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bot.domain.context import (
    LIMITS,
    FetchedFile,
    FetchedParts,
    FetchedThread,
    ThreadPart,
    characters_of,
    context_text,
)
from bot.domain.messages import (
    FileProblem,
    QuotedFile,
    SlackFile,
    people_in,
    quoted,
)
from bot.domain.projects import JobApiAbilities
from bot.domain.requests.request import Request, RequestContext
from bot.errors import ChatError
from bot.notices.requests import ContextCut
from bot.ports.slack import DisplayNames, SlackReading
from bot.runtime.secrets.masking import SecretMasker
from bot.runtime.text import in_thread_if_long
from bot.scheduler.worker import answer_or_none, in_time

MAX_SENT_BYTES = 10 * 1024 * 1024
"""Bytes of one file that is uploaded to the job API."""
MAX_QUOTED_BYTES = 64 * 1024
"""The largest file, in bytes, whose text is part of the context."""
_AT_A_TIME, _AT_A_TIME_OF_ALL = 4, 32
"""Parts in progress, of one request and in total: they take connections and memory."""
_UNREAD = "(The thread's messages could not be read.)"


@dataclass(frozen=True)
class Gathered:
    """The context of a request; what its person is told about left-out context (None: nothing was). `to_upload` are
    files that the job API has to get first. `thread_unread`: the thread should be part of the context but could not be
    read.
    """

    context: RequestContext | None = None
    told: ContextCut | None = None
    to_upload: tuple[SlackFile, ...] = ()
    thread_unread: bool = False


_Result = FetchedThread | FetchedFile | ChatError


@dataclass(frozen=True)
class FetchLimits:
    """Limits in seconds: for each part, and for starting further parts."""

    part: float = 8.0
    begin: float = 3.0


@dataclass(frozen=True)
class Fetch:
    """The result of one round of fetching. `failure` is why a part could not be fetched; without one, what is missing
    from the `whole` had no turn yet.
    """

    parts: FetchedParts
    whole: bool
    failure: ChatError | None = None


@dataclass(frozen=True)
class ContextGatherer:
    """Fetches the parts of requests' contexts from Slack, and composes the contexts of them."""

    reading: SlackReading
    abilities: Callable[[str], JobApiAbilities]
    people: DisplayNames
    masker: SecretMasker
    limits: FetchLimits = FetchLimits()
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_A_TIME_OF_ALL), init=False)

    async def fetch(
        self, channel_id: str, part: ThreadPart | None, files: Sequence[SlackFile], kept: FetchedParts
    ) -> Fetch:
        """Fetches the missing parts: a part of the thread, and the files; `kept` parts are not fetched again. Never
        raises.
        """
        parts, failure = kept.of(part, files), None
        wanted: list[ThreadPart | SlackFile] = [part] if part is not None and parts.thread is None else []
        wanted += parts.missing(files)
        count = len(wanted)
        for result in await self._fetch_each(channel_id, iter(wanted)):
            match result:
                case FetchedThread():
                    parts = replace(parts, thread=result)
                case FetchedFile():
                    parts = replace(parts, files=(*parts.files, result))
                case ChatError():  # if one asks to wait, all wait
                    failure = result if failure is None or failure.is_failure else failure
                    continue
            count -= 1
        return Fetch(parts, count == 0, failure)

    async def _fetch_each(self, channel_id: str, wanted: Iterator[ThreadPart | SlackFile]) -> list[_Result]:
        results: list[_Result] = []
        loop = asyncio.get_running_loop()
        end = loop.time() + self.limits.begin

        async def fetch_some() -> None:
            while True:
                async with self._turns:
                    each = next(wanted, None) if loop.time() < end else None
                    if each is None:
                        return
                    results.append(await self._fetch_one(channel_id, each))

        await asyncio.gather(*(fetch_some() for _ in range(_AT_A_TIME)))
        return results

    async def _fetch_one(self, channel_id: str, wanted: ThreadPart | SlackFile) -> _Result:
        try:
            if isinstance(wanted, ThreadPart):
                return await in_time(self._thread(channel_id, wanted), self.limits.part)
            return FetchedFile(wanted, await in_time(self._file(wanted), self.limits.part))
        except ChatError as error:
            return error

    async def _thread(self, channel_id: str, part: ThreadPart) -> FetchedThread:
        bounds = {"after_ts": part.after_ts, "before_ts": part.before_ts}
        read = self.reading.conversations.thread(channel_id, part.thread_ts, **bounds, limit=LIMITS.messages + 1)
        messages = await answer_or_none(read)
        return FetchedThread(part, None if messages is None else tuple(messages))

    async def _file(self, file: SlackFile) -> QuotedFile:
        """Returns the file, with its text if it is readable text."""
        if not file.id:
            return QuotedFile(file, problem=FileProblem.REFUSED)
        known = await answer_or_none(self.reading.files.look_up(file))
        if known is None:
            return QuotedFile(file, problem=FileProblem.REFUSED)
        if known.elsewhere:
            return QuotedFile(known, problem=FileProblem.ELSEWHERE)
        if not known.may_be_text:
            return QuotedFile(known)
        content = await answer_or_none(self.reading.files.read(known, max_bytes=MAX_QUOTED_BYTES))
        return QuotedFile(known, problem=FileProblem.REFUSED) if content is None else quoted(known, content)

    async def compose(self, request: Request, project: str, part: ThreadPart | None, parts: FetchedParts) -> Gathered:
        """Returns the context of a request for a project, with a part of the thread. Parts that could not be fetched
        are mentioned.
        """
        given = ""  # what the person chose before anything was gathered
        if request.context is not None:
            given = request.context.text if request.context.given is None else request.context.given
        takes_files = self.abilities(project).files
        quotes = [_treated(file, parts.found(file), takes_files=takes_files) for file in request.attachments.files]
        to_upload, masked = self._without_secrets([quote.file for quote in quotes if quote.sent_along])
        messages = parts.thread.messages if parts.thread is not None else None
        unread = part is not None and messages is None
        told, forwarded = [quote for quote in quotes if not quote.sent_along], request.attachments.forwarded
        people = people_in((), forwarded)
        names = await self.people.names(people) if people else {}
        made = await in_thread_if_long(
            characters_of(messages or (), told, forwarded),
            lambda: context_text(messages or (), told, forwarded, mask=self.masker.mask_together, names=names),
        )
        text = "\n\n".join(filter(None, (given, _UNREAD if unread else "", made.text)))
        context = RequestContext(text, given=given)
        notes, masked = made.notes, tuple(dict.fromkeys((*made.masked, *masked)))
        left_out = notes.messages_left_out or notes.words_left_out
        files = notes.link_only, notes.cut_files
        cut = ContextCut(request.person_id, *files, left_out, masked, notes.name_only, thread_unread=unread)
        return Gathered(context, cut if notes or masked or unread else None, to_upload, thread_unread=unread)

    def _without_secrets(self, files: Sequence[SlackFile]) -> tuple[tuple[SlackFile, ...], tuple[str, ...]]:
        """Returns files with masked names and links, and the kinds of secrets that these contained."""
        masked = self.masker.mask_together([text for file in files for text in (file.name, file.permalink)])
        texts = iter(masked.texts)
        return tuple(replace(file, name=next(texts), permalink=next(texts)) for file in files), masked.kinds


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
