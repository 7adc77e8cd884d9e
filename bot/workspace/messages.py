"""The messages of a workspace: histories, threads, and the clock that gives each its timestamp."""

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from itertools import chain

from bot.workspace.models import Message

_TIMESTAMP = re.compile(r"\d{1,12}\.\d{1,6}", re.ASCII)


class Timestamps:
    """Slack timestamps: seconds and microseconds, unique and increasing, such as ``1700000000.000100``."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last = 0

    def next(self) -> str:
        self._last = max(int(self._now() * 1_000_000), self._last + 1)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def seen(self, ts: str) -> None:
        """Go on after a timestamp given before this process started."""
        self._last = max(self._last, microseconds(ts))


def is_timestamp(text: str) -> bool:
    return _TIMESTAMP.fullmatch(text) is not None


def microseconds(ts: str) -> int:
    """A timestamp as a number that can be compared. Text that is not one raises ValueError."""
    seconds, _, fraction = ts.partition(".")
    return int(seconds) * 1_000_000 + int(fraction.ljust(6, "0")[:6] or 0)


class Conversation:
    """The messages of one channel, by timestamp, with an index of its threads."""

    def __init__(self) -> None:
        self._by_ts: dict[str, Message] = {}
        self._order: list[int] = []
        self._threads: dict[str, list[str]] = {}

    def __iter__(self) -> Iterator[Message]:
        """Every message, replies included, oldest first."""
        return (self._by_ts[_text(moment)] for moment in self._order)

    def get(self, ts: str) -> Message | None:
        return self._by_ts.get(ts)

    def add(self, message: Message) -> None:
        self._by_ts[message.ts] = message
        insort(self._order, microseconds(message.ts))
        if message.is_reply and message.thread_ts:
            self._threads.setdefault(message.thread_ts, []).append(message.ts)

    def remove(self, message: Message) -> None:
        del self._by_ts[message.ts]
        del self._order[bisect_left(self._order, microseconds(message.ts))]
        if message.is_reply and message.thread_ts:
            self._threads[message.thread_ts].remove(message.ts)

    def replies(self, thread_ts: str) -> list[Message]:
        """The replies of a thread, oldest first, without its first message."""
        return [self._by_ts[ts] for ts in self._threads.get(thread_ts, ())]

    def reply_count(self, thread_ts: str) -> int:
        return len(self._threads.get(thread_ts, ()))

    def newest_first(self, oldest: int, latest: int) -> Iterator[Message]:
        """Messages within two moments in microseconds, both included, replies included."""
        start, end = bisect_left(self._order, oldest), bisect_right(self._order, latest)
        return (self._by_ts[_text(self._order[index])] for index in range(end - 1, start - 1, -1))

    def thread(self, thread_ts: str) -> list[Message]:
        """A thread with its first message."""
        first = self._by_ts.get(thread_ts)
        return list(chain([first] if first else [], self.replies(thread_ts)))


def _text(moment: int) -> str:
    return f"{moment // 1_000_000}.{moment % 1_000_000:06d}"
