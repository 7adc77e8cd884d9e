"""Fetches what goes along with a request, part by part: each has its own time, and none that fails stops another."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.domain.context.fetched_parts import FetchedFile, FetchedParts, FetchedThread, ThreadPart
from bot.domain.context.slack_files import FileMode, FileProblem, QuotedFile, SlackFile, quoted
from bot.domain.context.thread_context import LIMITS
from bot.domain.context.thread_messages import ThreadMessage
from bot.ports.slack import SlackReading
from bot.scheduler.preparing.slack_reading import NotToBeHadNow, if_told
from bot.scheduler.preparing.together import SharedThread

MAX_QUOTED_BYTES = 64 * 1024
"""Of one file whose text goes along."""
_AT_A_TIME, _AT_A_TIME_OF_ALL = 4, 32
"""Parts under way, of one request and of all: they take connections and memory."""
_Wanted = ThreadPart | SlackFile
_Result = FetchedThread | FetchedFile | NotToBeHadNow


@dataclass(frozen=True)
class FetchLimits:
    """In seconds: for each part, for how long others are begun, and for how long a reply waits for others that may go
    out with it.
    """

    part: float = 8.0
    begin: float = 3.0
    together: float = 2.0


FETCH_LIMITS = FetchLimits()


@dataclass(frozen=True)
class Fetch:
    """What one round of fetching came to. `failure` is why a part could not be had; without one, what is not `whole`
    had not its turn.
    """

    parts: FetchedParts
    whole: bool
    failure: NotToBeHadNow | None = None


class PartsFetcher:
    """Fetches from Slack."""

    def __init__(self, reading: SlackReading, limits: FetchLimits) -> None:
        self._reading = reading
        self._limits = limits
        self._turns = asyncio.Semaphore(_AT_A_TIME_OF_ALL)

    async def fetch(
        self,
        channel_id: str,
        part: ThreadPart | None,
        files: Sequence[SlackFile],
        kept: FetchedParts,
        shared: SharedThread | None = None,
    ) -> Fetch:
        """Fetches what is missing of a part of the thread, which can be `shared` with others, and of the files; what is
        `kept` is there. Never raises.
        """
        parts, failure = kept.of(part, files), None
        wanted: list[_Wanted] = [part] if part is not None and parts.thread is None else []
        wanted += parts.missing(files)
        count = len(wanted)
        for result in await self._each(channel_id, iter(wanted), shared or SharedThread()):
            match result:
                case FetchedThread():
                    parts = replace(parts, thread=result)
                case FetchedFile():
                    parts = replace(parts, files=(*parts.files, result))
                case NotToBeHadNow():
                    failure = result
                    continue
            count -= 1
        return Fetch(parts, count == 0, failure)

    async def _each(self, channel_id: str, wanted: Iterator[_Wanted], shared: SharedThread) -> list[_Result]:
        results: list[_Result] = []
        loop = asyncio.get_running_loop()
        end = loop.time() + self._limits.begin

        async def fetch_some() -> None:
            while True:
                async with self._turns:
                    each = next(wanted, None) if loop.time() < end else None
                    if each is None:
                        return
                    results.append(await self._one(channel_id, each, shared))

        await asyncio.gather(*(fetch_some() for _ in range(_AT_A_TIME)))
        return results

    async def _one(self, channel_id: str, wanted: _Wanted, shared: SharedThread) -> _Result:
        try:
            async with asyncio.timeout(self._limits.part):
                if isinstance(wanted, ThreadPart):
                    return await self._thread(channel_id, wanted, shared)
                return FetchedFile(wanted, await self._file(wanted))
        except NotToBeHadNow as error:
            return error
        except TimeoutError:
            return NotToBeHadNow("Slack: no answer in time")

    async def _thread(self, channel_id: str, part: ThreadPart, shared: SharedThread) -> FetchedThread:
        async def read(wanted: ThreadPart, limit: int) -> Sequence[ThreadMessage] | None:
            bounds = {"after_ts": wanted.after_ts, "before_ts": wanted.before_ts}
            conversations = self._reading.conversations
            return await if_told(conversations.thread(channel_id, wanted.thread_ts, **bounds, limit=limit))

        messages = await shared.messages(part, LIMITS.messages + 1, read)
        return FetchedThread(part, None if messages is None else tuple(messages))

    async def _file(self, file: SlackFile) -> QuotedFile:
        """The file as it is, with its text where it is text and can be read."""
        if not file.id:
            return QuotedFile(file, problem=FileProblem.REFUSED)
        known = await if_told(self._reading.files.look_up(file))
        if known is None:
            return QuotedFile(file, problem=FileProblem.REFUSED)
        if known.mode is FileMode.EXTERNAL:
            return QuotedFile(known, problem=FileProblem.ELSEWHERE)
        if not known.may_be_text:
            return QuotedFile(known)
        content = await if_told(self._reading.files.read(known, max_bytes=MAX_QUOTED_BYTES))
        return QuotedFile(known, problem=FileProblem.REFUSED) if content is None else quoted(known, content)
