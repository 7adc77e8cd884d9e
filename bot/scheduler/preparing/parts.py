"""Fetches a request's context part by part: each has its own time limit, and a failure does not stop the others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from bot.domain.context.fetched_parts import FetchedFile, FetchedParts, FetchedThread, ThreadPart
from bot.domain.context.slack_files import FileMode, FileProblem, QuotedFile, SlackFile, ThreadMessage, quoted
from bot.domain.context.thread_context import LIMITS
from bot.domain.jobs.poll_pace import Polling
from bot.domain.people.permissions import PermissionRules
from bot.domain.projects import Projects
from bot.errors import ChatError, ChatUncertain
from bot.ports.slack import SlackReading
from bot.runtime.secrets.masking import SecretMasker
from bot.scheduler.preparing.slack_reading import answer_or_none

TURN_SECONDS = 2.0
"""Seconds that a reply waits at most for the one before it to be prepared."""
Messages = Sequence[ThreadMessage] | None
ReadPart = Callable[[ThreadPart, int], Awaitable[Messages]]
"""Reads the last messages of a part of a thread, up to a limit; None if Slack does not show it."""


class Turns:
    """A queue of replies of a thread that are being prepared, in the order they were written, once the turns begin."""

    def __init__(self) -> None:
        self._begun = self._taken = False
        self._waiting: dict[asyncio.Future[None], str] = {}

    def ask(self, written_at: str) -> asyncio.Future[None]:
        """Joins the queue; returns a future that is done when the turn comes. `end` must follow in any case."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = written_at
        self._give()
        return turn

    def begin(self) -> None:
        """Gives the first turn."""
        self._begun = True
        self._give()

    def end(self, turn: asyncio.Future[None]) -> None:
        """Gives the next turn, if this one had come."""
        if self._waiting.pop(turn, None) is None:
            self._taken = False
        self._give()

    def _give(self) -> None:
        if self._begun and not self._taken and self._waiting:
            first = min(self._waiting, key=self._waiting.__getitem__)
            del self._waiting[first]
            self._taken = True
            first.set_result(None)


@dataclass
class SharedThread:
    """The messages read for all replies that are being prepared in a thread; `until_ts` is the newest of
    these replies.
    """

    until_ts: str = ""
    members: int = 0
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    turns: Turns = field(default_factory=Turns)
    _part: ThreadPart | None = None
    _messages: Sequence[ThreadMessage] = ()

    async def messages(self, part: ThreadPart, limit: int, read: ReadPart) -> Messages:
        """Returns the last messages of a part, at most `limit`: from what was read, or by reading up to `until_ts`."""
        if not self._covers(part) and self.until_ts > part.before_ts:
            await self._read_ahead(ThreadPart(part.thread_ts, part.after_ts, self.until_ts), limit * self.members, read)
        if not self._covers(part):
            return await read(part, limit)
        return tuple(each for each in self._messages if part.after_ts < each.ts < part.before_ts)[-limit:]

    async def _read_ahead(self, part: ThreadPart, limit: int, read: ReadPart) -> None:
        messages = await read(part, limit)
        if messages is not None and len(messages) < limit:  # otherwise some may be missing
            self._part, self._messages = part, messages

    def _covers(self, part: ThreadPart) -> bool:
        read = self._part
        if read is None or read.thread_ts != part.thread_ts:
            return False
        return read.after_ts <= part.after_ts and part.before_ts <= read.before_ts


class Together:
    """The threads being prepared in this process. A thread's messages are dropped with its last reply.

    Replies of one Slack thread that may be sent as one message wait for each other for a moment, and the thread is read
    once for all of them. This only saves calls: a reply that shares with no other reads its own part of the thread.
    """

    def __init__(self) -> None:
        self._threads: dict[str, SharedThread] = {}
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        """Ends all waiting for further replies."""
        self._hurried.set()

    @asynccontextmanager
    async def turn(self, thread_id: str, written_at: str, *, wait: float) -> AsyncIterator[SharedThread]:
        """Waits some seconds for others, then for its turn among them in the order they were written. A reply that
        finds others waiting waits with the first one.
        """
        shared = self._threads.setdefault(thread_id, SharedThread())
        shared.members += 1
        shared.until_ts = max(shared.until_ts, written_at)
        turn = shared.turns.ask(written_at)
        try:
            await self._others(shared, wait)
            await asyncio.wait({turn}, timeout=TURN_SECONDS)  # it continues on its own if that takes too long
            yield shared
        finally:
            shared.turns.end(turn)
            shared.members -= 1
            if not shared.members:
                del self._threads[thread_id]

    async def _others(self, shared: SharedThread, wait: float) -> None:
        if shared.members > 1:
            await shared.opened.wait()
            return
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._hurried.wait()
        finally:
            shared.opened.set()
            shared.turns.begin()


MAX_QUOTED_BYTES = 64 * 1024
"""The largest file, in bytes, whose text is part of the context."""
_AT_A_TIME, _AT_A_TIME_OF_ALL = 4, 32
"""Parts in progress, of one request and in total: they take connections and memory."""
_Wanted = ThreadPart | SlackFile
_Result = FetchedThread | FetchedFile | ChatError


@dataclass(frozen=True)
class FetchLimits:
    """Limits in seconds: for each part, for starting further parts, and for how long a reply waits for others that may
    be sent with it.
    """

    part: float = 8.0
    begin: float = 3.0
    together: float = 2.0


FETCH_LIMITS = FetchLimits()


@dataclass(frozen=True)
class Fetch:
    """The result of one round of fetching. `failure` is why a part could not be fetched; without one, what is missing
    from the `whole` had no turn yet.
    """

    parts: FetchedParts
    whole: bool
    failure: ChatError | None = None


class PartsFetcher:
    """Fetches parts from Slack."""

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
        """Fetches the missing parts: a part of the thread, which can be `shared` with others, and the files; `kept`
        parts are not fetched again. Never raises.
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
                case ChatError():
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
        except ChatError as error:
            return error
        except TimeoutError:
            return ChatUncertain("no answer in time")

    async def _thread(self, channel_id: str, part: ThreadPart, shared: SharedThread) -> FetchedThread:
        async def read(wanted: ThreadPart, limit: int) -> Sequence[ThreadMessage] | None:
            bounds = {"after_ts": wanted.after_ts, "before_ts": wanted.before_ts}
            conversations = self._reading.conversations
            return await answer_or_none(conversations.thread(channel_id, wanted.thread_ts, **bounds, limit=limit))

        messages = await shared.messages(part, LIMITS.messages + 1, read)
        return FetchedThread(part, None if messages is None else tuple(messages))

    async def _file(self, file: SlackFile) -> QuotedFile:
        """Returns the file, with its text if it is readable text."""
        if not file.id:
            return QuotedFile(file, problem=FileProblem.REFUSED)
        known = await answer_or_none(self._reading.files.look_up(file))
        if known is None:
            return QuotedFile(file, problem=FileProblem.REFUSED)
        if known.mode is FileMode.EXTERNAL:
            return QuotedFile(known, problem=FileProblem.ELSEWHERE)
        if not known.may_be_text:
            return QuotedFile(known)
        content = await answer_or_none(self._reading.files.read(known, max_bytes=MAX_QUOTED_BYTES))
        return QuotedFile(known, problem=FileProblem.REFUSED) if content is None else quoted(known, content)


@dataclass(frozen=True)
class PreparerSettings:
    """The settings of preparing: permissions, projects, polling, the seconds within which replies are
    merged, and how secrets are masked in the context.
    """

    rules: PermissionRules
    projects: Projects
    polling: Polling
    merge_seconds: float = 0.0
    limits: FetchLimits = FETCH_LIMITS
    masker: SecretMasker = field(default_factory=SecretMasker)
