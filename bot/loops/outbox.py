"""The outbox: the only one that speaks in threads. Says each notice once, in its thread's order."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from bot.domain.models import (
    Mark,
    Notice,
    NoticeKind,
    RequestState,
    Saying,
    Thread,
    Trouble,
    What,
)
from bot.errors import (
    ChatBusy,
    ChatError,
    ChatNotAllowed,
    ChatNotInChannel,
    ChatRefused,
    ChatUncertain,
    ChatUnreachable,
)
from bot.loops.loop import Loop, Terms
from bot.ports import Chat, ClaimedNotice, Store, Transaction
from bot.service import record_reply

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")

MOST_TRIES = 1_500
"""About a day of tries at the slowest pace; then a notice is given up, with its reason kept."""
FAULTY_TRIES = 3
"""Tries of a notice that trips a fault of ours; then it is given up, so that what follows in its thread can be said."""
SLOWEST_RETRY = 60.0
DOUBTS_FOR = 60.0
"""Seconds for which words for one person are repeated when in doubt: they leave no trace to look for."""
WORTH_PLAIN_WORDS = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"})


class PausedTooLongError(Exception):
    """The process was paused for so long that another may have taken the notice over."""


class Outbox(Loop[ClaimedNotice]):
    """Delivers notices."""

    def __init__(self, store: Store, chat: Chat, terms: Terms, *, at_once: int = 16) -> None:
        super().__init__(store, terms, at_once=at_once)
        self._chat = chat
        self._held: dict[str, float] = {}

    async def take(self, limit: int) -> Sequence[ClaimedNotice]:
        """Claims notices that are due, none of the channels that Slack asked to leave alone for a while."""
        now = self._now()
        self._held = {channel: until for channel, until in self._held.items() if until > now}
        return await self._store.transact(
            lambda tx: tx.claim_notices(self._owner, lease=self._lease, limit=limit, held_channels=tuple(self._held))
        )

    async def work(self, item: ClaimedNotice, taken_at: float) -> None:
        """Delivers one notice, and records how that went."""
        try:
            ts = await self._deliver(item, taken_at)
        except PausedTooLongError:
            return
        except ChatError as error:
            if isinstance(error, ChatBusy | ChatNotInChannel | ChatRefused):
                self.went_well()
            await self.record(partial(self._failed, item, error))
            return
        except Exception as fault:
            logger.exception("notice %s (%s) trips a fault", item.notice.key, item.notice.what.value)
            await self.record(partial(self._failed, item, _faulty(item.notice, fault)))
            return
        self.went_well()
        await self.record(partial(self._delivered, item, ts))

    async def _deliver(self, item: ClaimedNotice, taken_at: float) -> str | None:
        try:
            return await self._speak(item.notice, item.thread, taken_at)
        except ChatNotInChannel:
            self._check(taken_at)
            await self._bounded(self._chat.join(item.thread.channel_id))
            return await self._speak(item.notice, item.thread, taken_at)

    async def _speak(self, notice: Notice, thread: Thread, taken_at: float) -> str | None:
        self._check(taken_at)
        match notice.kind:
            case NoticeKind.MARK:
                mark, at = Mark(notice.facts["mark"]), notice.facts["message_ts"]
                await self._bounded(self._chat.mark(thread, at, mark, instead_of=_replaced(notice, mark)))
                return None
            case NoticeKind.TELL:
                await self._bounded(self._chat.tell(thread, notice))
                return None
            case NoticeKind.CARD if thread.ts is not None:
                await self._bounded(self._chat.update_card(thread, plain=notice.plain))
                return thread.ts
            case _:
                return await self._say_once(notice, thread, taken_at)

    async def _say_once(self, notice: Notice, thread: Thread, taken_at: float) -> str:
        if notice.uncertain:
            found = await self._bounded(self._chat.find(thread, notice.key))
            if found is not None:
                return found
            self._check(taken_at)
        if notice.kind is NoticeKind.CARD:
            return await self._bounded(self._chat.post_card(thread, notice.key, plain=notice.plain))
        return await self._bounded(self._chat.post(thread, notice))

    async def _bounded(self, call: Awaitable[Answer]) -> Answer:
        try:
            async with asyncio.timeout(self._terms.call_limit):
                return await call
        except TimeoutError:
            raise ChatUncertain("no answer in time") from None

    def _check(self, taken_at: float) -> None:
        if not self.in_time(taken_at):
            raise PausedTooLongError

    async def _delivered(self, item: ClaimedNotice, ts: str | None, tx: Transaction) -> None:
        posted_card = item.notice.kind is NoticeKind.CARD and item.thread.ts is None
        thread = await tx.thread(item.thread.id) if posted_card else None
        held = await tx.notice_done(item.notice, self._owner, ts=ts)
        if held and thread is not None and thread.ts is None and ts:
            await tx.set_card(thread.id, ts)
            for reply in await tx.take_early_replies(thread.channel_id, ts):
                await record_reply(tx, replace(thread, ts=ts), reply)

    async def _failed(self, item: ClaimedNotice, error: ChatError, tx: Transaction) -> None:
        notice, wait = item.notice, self._pause(item.notice)
        enough = notice.kind is NoticeKind.TELL and notice.uncertain and tx.now > notice.created_at + DOUBTS_FOR
        match error:
            case ChatBusy():
                wait = max(error.retry_after or 0.0, 1.0)
                self._held[item.thread.channel_id] = self._now() + wait
                await tx.notice_later(notice, self._owner, due_in=wait, problem=error.reason)
            case ChatUnreachable() if notice.attempts < MOST_TRIES:
                self.went_wrong(error, again_in=error.retry_after)
                wait = max(wait, error.retry_after or 0.0)
                await tx.notice_later(notice, self._owner, due_in=wait, problem=error.reason)
            case ChatUncertain() if notice.attempts < MOST_TRIES and not enough:
                self.went_wrong(error, one_piece=True)
                await tx.notice_later(notice, self._owner, due_in=wait, uncertain=True, problem=error.reason)
            case ChatNotAllowed() if notice.attempts < MOST_TRIES:
                self.went_wrong(error)
                await tx.notice_later(notice, self._owner, due_in=max(wait, 10.0), problem=error.reason)
            case ChatRefused() if error.reason in WORTH_PLAIN_WORDS and not notice.plain:
                await tx.notice_later(notice, self._owner, due_in=0.0, plain=True, problem=error.reason)
            case _:
                await self._give_up(tx, item, error.reason)

    async def _give_up(self, tx: Transaction, item: ClaimedNotice, reason: str) -> None:
        """Records why a notice can't be said in its thread, and says it to the person who asked, where that can be."""
        notice = item.notice
        thread = await tx.thread(item.thread.id) if notice.kind is NoticeKind.CARD else item.thread
        if thread is None or not await tx.notice_given_up(notice, self._owner, problem=reason):
            return
        logger.warning("notice %s (%s) is given up: %s", notice.key, notice.what.value, reason)
        if notice.kind is NoticeKind.CARD and thread.ts is None:
            await self._call_off(tx, thread, reason)
        elif notice.kind is NoticeKind.POST:
            facts = {**notice.facts, "person": thread.asker_id}
            await tx.say(thread.id, Saying(f"{_within(notice)}/told", notice.what, facts, NoticeKind.TELL))

    async def _call_off(self, tx: Transaction, thread: Thread, reason: str) -> None:
        """No card, no thread, no job: the person is told how to make room for it."""
        start = await tx.start_request(thread.id)
        if start is not None:
            await tx.settle_request(start.id, RequestState.REFUSED, problem=reason)
        known = replace(thread.known, trouble=Trouble.CANNOT_POST, trouble_words=reason)
        await tx.save_known(thread.id, known, poll_in=None)
        await tx.take_early_replies(thread.channel_id, "")
        facts = {"person": thread.asker_id, "reason": reason}
        await tx.say(thread.id, Saying("cannot_post", What.CANNOT_POST, facts, NoticeKind.TELL))

    def _pause(self, notice: Notice) -> float:
        jitter = random.random()  # noqa: S311 - spreads retries, guards nothing
        return min(2.0 ** min(notice.attempts, 10) / 2, SLOWEST_RETRY) * (0.75 + 0.5 * jitter)


def _faulty(notice: Notice, fault: Exception) -> ChatError:
    """What a fault of ours counts as: it is not known how far the notice came, and in the end it can't be had."""
    reason = f"unexpected {type(fault).__name__}"
    return ChatUncertain(reason) if notice.attempts < FAULTY_TRIES else ChatRefused(reason)


def _replaced(notice: Notice, mark: Mark) -> list[Mark]:
    """The marks that may be there already: what gets a second mark had RECORDED first. Slack limits how often one can
    be taken away, so none is tried in vain.
    """
    before = {0: [], 1: [Mark.RECORDED]}.get(notice.revision, list(Mark))
    return [other for other in before if other is not mark]


def _within(notice: Notice) -> str:
    return notice.key.removeprefix(f"{notice.thread_id}/")
