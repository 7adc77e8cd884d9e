"""The messages of one channel: its history and its threads."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import chain

from bot.workspace.model.entities import Message
from bot.workspace.model.timestamps import microseconds, timestamp_of


class Conversation:
    """The messages of one channel, by timestamp, with an index of its threads."""

    def __init__(self) -> None:
        self._by_ts: dict[str, Message] = {}
        self._order: list[int] = []
        self._threads: dict[str, list[str]] = {}

    def __iter__(self) -> Iterator[Message]:
        """Yields every message, replies included, oldest first."""
        return (self._by_ts[timestamp_of(moment)] for moment in self._order)

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
        """Returns the replies of a thread, oldest first, without its first message."""
        return [self._by_ts[ts] for ts in self._threads.get(thread_ts, ())]

    def reply_count(self, thread_ts: str) -> int:
        return len(self._threads.get(thread_ts, ()))

    def newest_first(self, oldest: int, latest: int) -> Iterator[Message]:
        """Yields the messages within two moments in microseconds, both included, replies included."""
        start, end = bisect_left(self._order, oldest), bisect_right(self._order, latest)
        return (self._by_ts[timestamp_of(self._order[index])] for index in range(end - 1, start - 1, -1))

    def thread(self, thread_ts: str) -> list[Message]:
        """Returns a thread with its first message."""
        first = self._by_ts.get(thread_ts)
        return list(chain([first] if first else [], self.replies(thread_ts)))
