"""Replies of one Slack thread that may go out as one message: they wait for each other for a moment, and what was said
there is read once for all of them.

All of it is a courtesy to Slack: a reply that finds nobody to share with reads its own part of the thread.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.domain.context.fetched_parts import ThreadPart
from bot.domain.context.thread_messages import ThreadMessage

TURN_SECONDS = 2.0
"""For which a reply waits at most for the one before it to be prepared."""
Messages = Sequence[ThreadMessage] | None
ReadPart = Callable[[ThreadPart, int], Awaitable[Messages]]
"""Reads at most so many messages, the last, of a part of a thread; None where Slack does not show it."""


class Turns:
    """Whose turn it is among those who prepare replies of a thread: whoever wrote first, once the turns begin."""

    def __init__(self) -> None:
        self._begun = self._taken = False
        self._waiting: dict[asyncio.Future[None], str] = {}

    def ask(self, written_at: str) -> asyncio.Future[None]:
        """Returns what is done when the turn has come; `end` is due whatever becomes of it."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = written_at
        self._give()
        return turn

    def begin(self) -> None:
        """Gives the first turn."""
        self._begun = True
        self._give()

    def end(self, turn: asyncio.Future[None]) -> None:
        """Gives the next turn, where this one had come."""
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
    """What was read of a thread for all who prepare replies there at the moment; `until_ts` is the newest of these."""

    until_ts: str = ""
    members: int = 0
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    turns: Turns = field(default_factory=Turns)
    _part: ThreadPart | None = None
    _messages: Sequence[ThreadMessage] = ()

    async def messages(self, part: ThreadPart, limit: int, read: ReadPart) -> Messages:
        """Returns the last messages of a part, at most `limit`: of what was read, or by reading up to `until_ts`."""
        if not self._covers(part) and self.until_ts > part.before_ts:
            await self._read_ahead(ThreadPart(part.thread_ts, part.after_ts, self.until_ts), limit * self.members, read)
        if not self._covers(part):
            return await read(part, limit)
        return tuple(each for each in self._messages if part.after_ts < each.ts < part.before_ts)[-limit:]

    async def _read_ahead(self, part: ThreadPart, limit: int, read: ReadPart) -> None:
        messages = await read(part, limit)
        if messages is not None and len(messages) < limit:  # else some may have been left out
            self._part, self._messages = part, messages

    def _covers(self, part: ThreadPart) -> bool:
        read = self._part
        if read is None or read.thread_ts != part.thread_ts:
            return False
        return read.after_ts <= part.after_ts and part.before_ts <= read.before_ts


class Together:
    """One for a process. What is kept goes with the last who prepares a reply of the thread."""

    def __init__(self) -> None:
        self._threads: dict[str, SharedThread] = {}
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        """Has nobody wait for replies that may follow any more."""
        self._hurried.set()

    @asynccontextmanager
    async def turn(self, thread_id: str, written_at: str, *, wait: float) -> AsyncIterator[SharedThread]:
        """Waits so many seconds for others, then for its turn among them, in the order in which they were written;
        whoever finds others waits with the first.
        """
        shared = self._threads.setdefault(thread_id, SharedThread())
        shared.members += 1
        shared.until_ts = max(shared.until_ts, written_at)
        turn = shared.turns.ask(written_at)
        try:
            await self._others(shared, wait)
            await asyncio.wait({turn}, timeout=TURN_SECONDS)  # it goes on without where that takes too long
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
