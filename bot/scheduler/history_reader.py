"""What was written while nobody listened: a process that receives from Slack notes in the database until when it did,
and the history reader reads the rest in Slack's history and passes it on as if Slack had delivered it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from bot.domain import gaps
from bot.domain.jobs.stopping import is_at_work
from bot.errors import ChatError, ChatNotInChannel, ChatRejected, NotRecorded, StoreError
from bot.notices.job import HistoryUnread
from bot.notices.notice import NewNotice
from bot.notices.questions import StopAsked
from bot.ports.slack import ChannelReader, HistoryPage, MissedEvents, PastMessages
from bot.runtime.logging import LogContext
from bot.scheduler.worker import NOTHING, DueWork, SlackWorker, WorkerSettings
from bot.store.gaps import ClaimedGap
from bot.store.store import Store, Transaction

logger = logging.getLogger(__name__)

_LOOK_INTERVAL = 0.5


class Heartbeat:
    """`listening` returns since when this process listens, and until when it certainly did (None: it does not now).
    `on_gap` is called if nobody listened for a time, which is a row by then.
    """

    def __init__(
        self, store: Store, owner: str, listening: Callable[[], gaps.Listening | None], *, on_gap: Callable[[], None]
    ) -> None:
        self._store = store
        self._owner = owner
        self._listening = listening
        self._on_gap = on_gap
        self._listened_for = 0.0

    async def run(self) -> None:
        """Notes it regularly, and at once when the process listens again."""
        loop = asyncio.get_running_loop()
        noted_at = loop.time()
        while True:
            await asyncio.sleep(_LOOK_INTERVAL)
            now = self._listening()
            if now is not None and (loop.time() - noted_at >= gaps.BEAT or -now.since < self._listened_for):
                noted_at = loop.time()
                await self.beat()

    async def beat(self) -> None:
        """Notes it now. If the database is unavailable, a later beat shows the gap."""
        now = self._listening()
        if now is None:
            return
        try:
            is_gap = await self._store.transact(lambda tx: tx.gaps.listens(self._owner, now))
        except StoreError as error:
            logger.debug("it could not be noted that this process listens: %s", error)
            return
        self._listened_for = -now.since
        if is_gap:
            logger.info("nobody listened to Slack for a time: its history is read")
            self._on_gap()

    async def end(self) -> None:
        """Notes that this process listens no more. Raises StoreError."""
        await self._store.transact(lambda tx: tx.gaps.listens_no_more(self._owner))


T = TypeVar("T")

_RETRY, _LONGEST_RETRY = 2.0, 300.0
"""Seconds between two attempts: the first, and at most."""
_GIVES_UP = 3
"""Attempts after which a message that cannot be recorded is left out."""


class _Lost(Exception):
    """Another process has claimed the gap."""


class HistoryReader(SlackWorker[ClaimedGap]):
    """Reads one conversation after the other, those with the newest news first. `bot_user_id` is ours."""

    name = "history reader"

    def __init__(
        self,
        store: Store,
        history: PastMessages,
        events: MissedEvents,
        channels: ChannelReader,
        settings: WorkerSettings,
        *,
        bot_user_id: str,
    ) -> None:
        super().__init__(store, settings, concurrency=2)
        self._history = history
        self._events = events
        self._channels = channels
        self._bot_user_id = bot_user_id
        self._unread: list[tuple[float, str]] = []

    def claim_interval(self, claimed: int) -> float:  # noqa: ARG002 - the frame's signature
        """See Worker."""
        return 1.0

    async def claim(self, limit: int) -> Sequence[ClaimedGap]:
        """Claims gaps that are due."""
        return await self._store.transact(lambda tx: tx.gaps.claim(self._owner, lease=self._lease, limit=limit))

    def subject(self, item: ClaimedGap) -> LogContext:
        """See Worker."""
        return LogContext(thread=f"{item.gap.channel_id}/{item.gap.thread_ts}")

    def warning(self) -> str:
        """Returns for the health what could not be read within a day; empty if everything was."""
        self._unread = [(at, what) for at, what in self._unread if at > self._monotonic() - gaps.DAY]
        if not self._unread:
            return ""
        others = f"; {len(self._unread) - 1} more in the log" if len(self._unread) > 1 else ""
        return self._unread[-1][1] + others

    async def process(self, item: ClaimedGap, claimed_at: float) -> None:  # noqa: ARG002 - it extends its claim
        """Reads the history for one gap."""
        try:
            await self._read(item)
        except _Lost:
            return
        except (ChatRejected, ChatNotInChannel) as error:
            self._report(item.gap, error.reason)
            await self._close(item.gap)
        except ChatError as error:
            self.record_no_answer(error)
            await self._postpone(item, error.retry_after, tried=error.is_failure)
        except NotRecorded:
            await self._postpone(item, None, tried=True)
        else:
            self.record_answer()

    async def _read(self, item: ClaimedGap) -> None:
        gap = item.gap
        if not gap.channel_id:
            await self._close(gap, lambda tx: tx.gaps.spread(gap))
            self.wake()
        elif gap.channel_id == gaps.ALL_CHANNELS:
            async for ids in self._pages(gap, self._history.channels):
                each = [replace(gap, channel_id=channel_id) for channel_id in ids]
                await self._store.transact(lambda tx, each=each: tx.gaps.add(each, newest=gap.until))  # type: ignore[misc]
            await self._close(gap)
        else:
            await self._read_messages(item)

    async def _read_messages(self, item: ClaimedGap) -> None:
        """Reads what was written, and passes it on oldest first; what is outside threads comes newest first."""
        gap, now = item.gap, await self._keep(item.gap)
        in_thread = bool(gap.thread_ts)
        if in_thread and await self._store.transact(lambda tx: _may_be_of_a_new_card(tx, gap)):
            raise NotRecorded  # it cannot be told what its messages answer
        found: list[gaps.Missed] = []
        pages, last = 0, ""
        async for messages in self._pages(gap, self._messages(gap, now)):
            pages, last = pages + 1, messages[-1].ts if messages else last
            new = list(gaps.missed(messages, gap, now, bot_user_id=self._bot_user_id))
            found += new
            if in_thread:
                await self._note_stops(gap, messages)
                for each in new:  # before the next page, which may never be read
                    await self._pass_on(item, each)
            else:
                going_on = [replace(gap, thread_ts=ts) for ts in gaps.threads_with_news(messages, gap, now)]
                await self._store.transact(lambda tx, new=going_on: tx.gaps.add(new, newest=gap.until))  # type: ignore[misc]
            if pages >= gaps.MOST_PAGES or len(found) >= gaps.MOST_MISSED:
                break
        reached_back = not in_thread and float(last or 0.0) < gap.since_readable(now)
        complete = len(found) < gaps.MOST_MISSED and (pages < gaps.MOST_PAGES or reached_back)
        for each in () if in_thread else reversed(found[: gaps.MOST_MISSED]):
            await self._pass_on(item, each)
        if complete and not gap.is_cut(now):
            await self._close(gap)
            return
        self._report(gap, "it is too much" if not complete else "it was too long ago")
        await self._close(gap, (lambda tx: _tell_thread(tx, gap)) if in_thread else None)

    def _messages(self, gap: gaps.Gap, now: float) -> Callable[[str], Awaitable[HistoryPage[gaps.PastMessage]]]:
        oldest = gap.oldest(now)
        return lambda cursor: self._history.messages(gap.channel_id, gap.thread_ts, oldest=oldest, cursor=cursor)

    async def _pages(
        self, gap: gaps.Gap, read: Callable[[str], Awaitable[HistoryPage[T]]]
    ) -> AsyncIterator[Sequence[T]]:
        """Yields page after page, and keeps the claim."""
        page = HistoryPage[T]((), "")
        while True:
            await self._keep(gap)
            page = await read(page.next_cursor)
            yield page.items
            if not page.next_cursor:
                return

    async def _pass_on(self, item: ClaimedGap, each: gaps.Missed) -> None:
        channel = await self._channels.channel(item.gap.channel_id)
        try:
            await self._events.handle(each, channel)
        except NotRecorded:
            if item.attempts < _GIVES_UP:
                raise
            self._report(item.gap, "a message could not be recorded")

    async def _note_stops(self, gap: gaps.Gap, messages: Sequence[gaps.PastMessage]) -> None:
        """Asks whoever added the reaction for a stop to the card of a job at work. Nobody knows when they did."""
        for card in messages:
            if card.stops and card.author_id == self._bot_user_id:
                await self._store.transact(lambda tx, card=card: self._ask_about_stops(tx, gap, card))  # type: ignore[misc]

    async def _ask_about_stops(self, tx: Transaction, gap: gaps.Gap, card: gaps.PastMessage) -> None:
        thread = await tx.threads.find_by_card(gap.channel_id, card.ts)
        if thread is None:
            return
        for person_id in card.stops:
            new = await tx.gaps.is_new_stop(thread.id, person_id)
            if new and not gap.first and is_at_work(thread.state, tx.now):
                await tx.notices.add(thread.id, NewNotice(StopAsked.key(person_id), StopAsked(person_id)))

    async def _keep(self, gap: gaps.Gap) -> float:
        now = await self._store.transact(lambda tx: tx.gaps.keep(gap, self._owner, lease=self._lease))
        if now is None:
            raise _Lost
        return now

    async def _close(self, gap: gaps.Gap, also: Callable[[Transaction], Awaitable[None]] | None = None) -> None:
        async def work(tx: Transaction) -> None:
            if also is not None:
                await also(tx)
            await tx.gaps.close(gap, self._owner)

        await self.record(work, leaves=frozenset({DueWork.PREPARE, DueWork.DELIVER}))

    async def _postpone(self, item: ClaimedGap, asked: float | None, *, tried: bool) -> None:
        """Releases a gap. What was passed on before is recognized when it comes again."""
        wait = asked or min(_RETRY * 2 ** min(item.attempts - 1, 10), _LONGEST_RETRY)
        await self.record(lambda tx: tx.gaps.postpone(item.gap, self._owner, due_in=wait, tried=tried), leaves=NOTHING)

    def _report(self, gap: gaps.Gap, reason: str) -> None:
        """Says in the log and the health that something could not be read."""
        since, until = (datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") for at in (gap.since, gap.until))
        where = f"{gap.channel_id} {gap.thread_ts}".strip()
        what = f"what was written in {where} from {since} to {until} UTC could not all be read: {reason}"
        logger.warning("%s", what)
        self._unread.append((self._monotonic(), what))
        del self._unread[:-1_000]


async def _may_be_of_a_new_card(tx: Transaction, gap: gaps.Gap) -> bool:
    if await tx.threads.find_newest(gap.channel_id, gap.thread_ts) is not None:
        return False
    return await tx.early_replies.are_expected(gap.channel_id, gap.thread_ts)


async def _tell_thread(tx: Transaction, gap: gaps.Gap) -> None:
    thread = await tx.threads.find_newest(gap.channel_id, gap.thread_ts)
    if thread is not None:
        unread = HistoryUnread(since=gap.since, until=gap.until)
        await tx.notices.add(thread.id, NewNotice(HistoryUnread.key(gap.until), unread))
