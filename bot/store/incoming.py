"""What Slack delivers in any order: replies that arrive before it is known where the card is that they answer, the
newest version of each message that was seen and answered, and the ids of channels whose id Slack changed.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, bindparam, case, delete, exists, func, or_, select, true, update

from bot.domain.requests.request import MessageVersion, Reply
from bot.notices.notice import Delivery
from bot.queue.columns import KeyText
from bot.queue.transaction import upserting
from bot.store.schema.rows import early_reply_from, early_reply_values
from bot.store.schema.tables import channel_ids, early_replies, message_versions, notices, threads
from bot.store.session import Part

_CARDS_ON_THEIR_WAY = (  # those that begin a thread; the place of other cards is known before they are posted
    select(threads.c.created_at)
    .where(
        threads.c.channel_id == bindparam("channel"),
        threads.c.card_ts.is_(None),
        threads.c.ts.is_(None),
        threads.c.root_ts == "",
        exists().where(
            notices.c.thread_id == threads.c.id, notices.c.delivery == Delivery.CARD, notices.c.due_at.is_not(None)
        ),
    )
    .order_by(threads.c.id)
)
_LOCKED_CARDS_ON_THEIR_WAY = _CARDS_ON_THEIR_WAY.with_for_update(of=threads, key_share=True)
_TAKING = 7_403
"""The first key of PostgreSQL's advisory locks for taking early replies; the second is the channel."""
_LOCK = select(func.pg_advisory_xact_lock(_TAKING, func.hashtext(bindparam("channel"))))
_CLOCK_DIFFERENCE = 60.0
"""Seconds by which Slack's clock, the source of every `ts`, may differ from ours."""


_KEEP = upserting(
    early_replies,
    lambda new: {name: new[name] for name in ("text", "attachments", "edited_at", "withdrawn", "mentions_us", "word")},
    where=lambda new: early_replies.c.edited_at < new.edited_at,
)
_OF_CHANNEL = (
    select(early_replies).where(early_replies.c.channel_id == bindparam("channel")).order_by(early_replies.c.message_ts)
)


class EarlyReplies(Part):
    """Replies whose thread is unknown while a card is being posted to their channel: people can answer a card in Slack
    before we know its `ts`.
    """

    async def keep(self, reply: Reply) -> bool:
        """Stores a reply; False if no card that begins a thread is being posted. Of several versions of a reply, the
        newest is kept, whatever their order; one that does not name its thread only changes a stored one.
        """
        session = self._session
        expected = await session.rows(_LOCKED_CARDS_ON_THEIR_WAY, channel=reply.channel_id)
        if not reply.thread_ts:
            this = (early_replies.c.channel_id == reply.channel_id, early_replies.c.message_ts == reply.message_ts)
            kept = await session.rows(select(early_replies.c.thread_ts).where(*this))
            reply = replace(reply, thread_ts=kept[0][early_replies.c.thread_ts] if kept else "")
        if not _may_be_one_of(expected, reply.thread_ts):
            return False
        await session.execute(_KEEP, early_reply_values(reply))
        return True

    async def are_expected(self, channel_id: str, thread_ts: str) -> bool:
        """Returns whether a message may be a card that is being posted."""
        return _may_be_one_of(await self._session.rows(_CARDS_ON_THEIR_WAY, channel=channel_id), thread_ts)

    async def take(self, channel_id: str, thread_ts: str) -> Sequence[Reply]:
        """Removes and returns the replies stored for this thread, in the order they were written. Replies stored for
        other threads are returned, too, once no other card that begins a thread is being posted to the channel.
        """
        session = self._session
        kept = await session.rows(_OF_CHANNEL, channel=channel_id)
        if kept and session.dialect == "postgresql":  # else each of two cards leaves replies to the other
            await session.execute(_LOCK, {"channel": channel_id})
            kept = await session.rows(_OF_CHANNEL, channel=channel_id)
        if not kept:
            return []
        others_wait = bool(await session.rows(_CARDS_ON_THEIR_WAY, channel=channel_id))
        gone: ColumnElement[bool] = early_replies.c.thread_ts == thread_ts if others_wait else true()
        await session.execute(delete(early_replies).where(early_replies.c.channel_id == channel_id, gone))
        replies = [early_reply_from(row) for row in kept]
        return [reply for reply in replies if reply.thread_ts == thread_ts or not others_wait]


def _may_be_one_of(cards: Sequence[RowMapping], ts: str) -> bool:
    return any(_seconds(ts) >= row[threads.c.created_at] - _CLOCK_DIFFERENCE for row in cards)


def _seconds(ts: str) -> float:
    """Returns the time in a `ts`; an unreadable one is too early to answer any card."""
    try:
        return float(ts)
    except ValueError:
        return 0.0


_KNOWN, _ANSWERED = message_versions.c.edited_at, message_versions.c.answered
_NOTE = upserting(
    message_versions,
    lambda new: {"edited_at": case((new.edited_at > _KNOWN, new.edited_at), else_=_KNOWN)},
    returning=[_KNOWN],
)
_ANSWER = upserting(
    message_versions,
    lambda new: {"answered": new.answered, "noted_at": new.noted_at},
    where=lambda new: or_(_ANSWERED.is_(None), new.answered > _ANSWERED),
)


class MessageVersions(Part):
    """Recently seen versions of messages. Slack delivers unacknowledged messages again, so an edit or a deletion can
    come before the message itself.
    """

    async def note(self, version: MessageVersion) -> bool:
        """Records that a version came; False if a newer one came before. Other versions of the message wait for the end
        of this transaction. Call it before anything else is locked.
        """
        newest = await self._session.execute(_NOTE, self._values(version))
        return bool(newest.scalar_one() == version.edited_at)

    async def answer(self, version: MessageVersion) -> bool:
        """Records that the writer of a version gets a private answer; False if they got one for this version or a newer
        one.
        """
        values = self._values(version) | {"answered": version.edited_at}
        return (await self._session.execute(_ANSWER, values)).rowcount == 1

    def _values(self, version: MessageVersion) -> dict[str, Any]:
        return {**asdict(version), "noted_at": self._session.now}


_LOCK_IDS = select(func.pg_advisory_xact_lock(7_402))
"""The key of the lock under which changes are recorded one at a time, so that each builds on the one before it."""
_MOST_IDS = 50
"""The most ids of one channel that are read."""
_KEEP_ID = upserting(
    channel_ids, lambda new: {"changed_at": new.changed_at}, where=lambda new: channel_ids.c.changed_at < new.changed_at
)
_CHANNEL = bindparam("channel", type_=KeyText)
_KNOWN_AS = select(channel_ids.c.known_as).where(channel_ids.c.channel_id == _CHANNEL).scalar_subquery()
_ALL_IDS = (
    select(channel_ids.c.channel_id, channel_ids.c.known_as)
    .where(channel_ids.c.known_as == func.coalesce(_KNOWN_AS, _CHANNEL))
    .order_by(channel_ids.c.known_as, channel_ids.c.changed_at)
    .limit(_MOST_IDS)
)


class ChannelIds(Part):
    """The ids of channels whose id Slack changed."""

    async def changed(self, old: str, new: str, at: float) -> None:
        """Records that a channel has another id since a time; in any order, and any number of times."""
        session = self._session
        if session.dialect == "postgresql":  # a transaction in SQLite has the whole database to itself
            await session.execute(_LOCK_IDS)
        (first, *_), (joined, *_) = await self.all_of(old), await self.all_of(new)
        if joined != first:
            both = update(channel_ids).where(channel_ids.c.known_as == joined)
            await session.execute(both.values(known_as=first))
            await self._keep(joined, first, 0.0)
        await self._keep(old, first, 0.0)
        await self._keep(new, first, at)

    async def all_of(self, channel_id: str) -> Sequence[str]:
        """Returns all ids of a channel, given any: first the one that rows use, last the newest."""
        rows = await self._session.rows(_ALL_IDS, channel=channel_id)
        if not rows:
            return (channel_id,)
        first, ids = rows[0][channel_ids.c.known_as], [row[channel_ids.c.channel_id] for row in rows]
        return (first, *(each for each in ids if each != first or each == ids[-1]))

    async def _keep(self, channel_id: str, first: str, at: float) -> None:
        values = {"channel_id": channel_id, "known_as": first, "changed_at": at, "recorded_at": self._session.now}
        await self._session.execute(_KEEP_ID, values)
