"""Reads messages again whose requests waited while Pagehand may not have been told of an edit or a deletion.

Each is looked up once after such a gap, and a thread's are looked up together. What has changed is recorded like the
event that Slack would have sent, before the request goes out.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.domain.requests.new_jobs import is_of_message
from bot.domain.requests.request import Person, Reply, Request
from bot.domain.slack_limits import PATIENCE, failing_since
from bot.domain.threads.thread import Thread
from bot.errors import ChatError
from bot.ports.slack import CurrentMessages
from bot.runtime.clock import Clock
from bot.runtime.recent import RecentDict
from bot.scheduler.worker import answer_or_none, in_time
from bot.store.request_queue import ClaimedRequest

logger = logging.getLogger(__name__)

READ_SECONDS = 8.0
"""The longest that one look-up takes."""
SHARED_FOR = 5.0
"""Seconds for which a look-up is shared while Pagehand is told of nothing."""
_MOST_KEPT = 500

Versions = Mapping[str, Reply | None]
HeardFor = Callable[[], float]
"""Returns for how many seconds Pagehand has been told of everything in Slack, without a gap."""


@dataclass
class _Conversation:
    """The messages of a thread from `since_ts` on, as they were `at` a time, monotonic and as a `ts`. `versions` is
    None if Slack does not show them.
    """

    versions: Versions | None = None
    since_ts: str = ""
    at: float | None = None
    at_ts: str = ""
    failing_since: float | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(eq=False)
class Rereader:
    """One per process. `revise` records an edit or a deletion."""

    versions: CurrentMessages
    revise: Callable[[Reply], Awaitable[object]]
    clock: Clock
    told_for: HeardFor
    _taken_over_at: float | None = field(default=None, init=False)
    _conversations: RecentDict[tuple[str, str], _Conversation] = field(
        default_factory=lambda: RecentDict(_MOST_KEPT), init=False
    )
    _recorded: RecentDict[tuple[str, str, str], None] = field(
        default_factory=lambda: RecentDict(_MOST_KEPT), init=False
    )

    def claimed(self, items: Sequence[ClaimedRequest], now: float) -> list[ClaimedRequest]:
        """Returns claimed requests, marked if they waited across a gap; `now` is the store's time. A process that died
        with one of them may have been told of an edit that it did not record.
        """
        if any(item.taken_over for item in items):
            self._taken_over_at = self.clock.monotonic()
        heard_for = self._heard_for()
        recorded = [min(each.recorded_at for each in (item.request, *item.merged)) for item in items]
        return [replace(item, waited=now - at > heard_for) for item, at in zip(items, recorded, strict=True)]

    async def newer(self, item: ClaimedRequest) -> Sequence[Reply]:
        """Returns the newer versions of the messages of a request and of those merged with it: none if they are as
        recorded, or if Slack has not shown them for PATIENCE. Raises ChatError.
        """
        channel_id, began = item.thread.channel_id, self.clock.monotonic()
        of_messages = [each for each in (item.request, *item.merged) if is_of_message(each, channel_id)]
        asked = [each for each in of_messages if item.waited and not each.uncertain]
        found = [await self._newer(each, item.thread, began) for each in asked]
        return [each for each in found if each is not None and _key(each) not in self._recorded]

    async def record(self, versions: Sequence[Reply]) -> None:
        """Records newer versions like the events about them. Raises StoreError."""
        for version in versions:
            logger.info("a message has changed since it was recorded")
            await self.revise(version)
            self._recorded[_key(version)] = None  # the request goes out as it is then

    def _heard_for(self) -> float:
        if self._taken_over_at is None:
            return self.told_for()
        return min(self.told_for(), self.clock.monotonic() - self._taken_over_at)

    async def _newer(self, request: Request, thread: Thread, began: float) -> Reply | None:
        root, ts = thread.ts or thread.root_ts or request.written_at, request.written_at
        read = await self._read(thread.channel_id, root, ts, began)
        if read.versions is not None and ts not in read.versions and thread.channel_id.startswith("D"):
            read = await self._read(thread.channel_id, "", ts, began)  # lines outside its threads belong to a job, too
        if read.versions is None:
            return None
        if ts not in read.versions:
            nobody = Person("", "")
            return Reply(nobody, thread.channel_id, root, ts, "", edited_at=read.at_ts, withdrawn=True)
        version = read.versions[ts]
        return version if version is not None and version.edited_at > request.edited_at else None

    async def _read(self, channel_id: str, thread_ts: str, ts: str, began: float) -> _Conversation:
        """Returns a conversation as it is since the last gap. That a message is gone shows only a look-up since `began`
        that reached back to it: it may be newer than an earlier one, or older than all that was read. Raises
        ChatError.
        """
        at = (channel_id, thread_ts)
        kept = self._conversations[at] = self._conversations.get(at) or _Conversation()
        async with kept.lock:
            missing = kept.versions is not None and ts not in kept.versions
            unread = missing and (ts < kept.since_ts or (kept.at or 0.0) < began)
            if unread or not self._is_current(kept):
                versions = await self._look_up(kept, self.versions.versions(channel_id, thread_ts, since_ts=ts))
                kept.versions, kept.since_ts, kept.at = versions, ts, self.clock.monotonic()
                kept.at_ts = f"{self.clock.now():.6f}"
        return kept

    def _is_current(self, kept: _Conversation) -> bool:
        return kept.at is not None and self.clock.monotonic() - kept.at <= max(self._heard_for(), SHARED_FOR)

    async def _look_up(self, kept: _Conversation, look_up: Awaitable[Versions]) -> Versions | None:
        """Returns what Slack shows; None if it refuses, or has failed for PATIENCE."""
        began = self.clock.monotonic()
        try:
            found = await in_time(answer_or_none(look_up), READ_SECONDS)
        except ChatError as error:
            kept.failing_since = failing_since(kept.failing_since, began, limited=not error.is_failure)
            if began - kept.failing_since < PATIENCE:
                raise
            found, reason = None, str(error)
        else:
            reason = "refused"
        kept.failing_since = None
        if found is None:
            logger.warning("requests go out as recorded, because Slack does not show their messages: %s", reason)
        return found


def _key(version: Reply) -> tuple[str, str, str]:
    return version.channel_id, version.message_ts, version.edited_at
