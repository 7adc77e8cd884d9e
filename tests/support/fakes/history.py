"""Slack's history in memory, and where what was missed is handed on."""

from dataclasses import dataclass, field
from typing import TypeVar

from bot.domain.gaps import Missed, PastMessage
from bot.domain.people import ChannelInfo
from bot.errors import NotRecorded
from bot.ports.slack import HistoryPage

T = TypeVar("T")


@dataclass
class FakeHistory:
    """`written` holds the messages of a channel and a thread (empty: outside threads), oldest first; `faults` are
    raised first, in order (None: that call is answered). `asked` records the calls.
    """

    written: dict[tuple[str, str], list[PastMessage]] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    faults: list[Exception | None] = field(default_factory=list)
    page_size: int = 200
    asked: list[str] = field(default_factory=list)

    async def messages(
        self, channel_id: str, thread_ts: str, *, oldest: str, cursor: str = ""
    ) -> HistoryPage[PastMessage]:
        self._ask(f"{channel_id}/{thread_ts}")
        found = [each for each in self.written.get((channel_id, thread_ts), []) if each.ts > oldest]
        return self._page(found if thread_ts else found[::-1], cursor)

    async def channels(self, cursor: str = "") -> HistoryPage[str]:
        self._ask("channels")
        return self._page(list(self.ids), cursor)

    def _page(self, found: list[T], cursor: str) -> HistoryPage[T]:
        start = int(cursor or 0)
        end = start + self.page_size
        return HistoryPage(found[start:end], str(end) if end < len(found) else "")

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.faults and (fault := self.faults.pop(0)) is not None:
            raise fault


@dataclass
class FakeMissedEvents:
    """Keeps what it is handed; `bad` are the `ts` of messages that cannot be recorded."""

    handled: list[tuple[str, Missed]] = field(default_factory=list)
    bad: set[str] = field(default_factory=set)

    async def handle(self, missed: Missed, channel: ChannelInfo) -> None:
        if missed.message.ts in self.bad:
            raise NotRecorded
        self.handled.append((channel.id, missed))

    @property
    def words(self) -> list[str]:
        return [missed.message.text for _, missed in self.handled]
