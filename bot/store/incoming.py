"""What Slack delivers in any order: replies that arrive before it is known where the card is that they answer, and the
newest version of each message that was seen and answered.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Executable, RowMapping, bindparam, case, delete, exists, func, or_, select, true

from bot.domain.requests.request import MessageVersion, Reply
from bot.notices.notice import Delivery
from bot.store.schema.rows import early_reply_from, early_reply_values
from bot.store.schema.tables import early_replies, message_versions, notices, threads
from bot.store.session import InsertInto, Part, for_each_dialect

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
_OF_CHANNEL = (
    select(early_replies).where(early_replies.c.channel_id == bindparam("channel")).order_by(early_replies.c.message_ts)
)
_THREAD_OF_KEPT = select(early_replies.c.thread_ts).where(
    early_replies.c.channel_id == bindparam("channel"), early_replies.c.message_ts == bindparam("written")
)
_CLOCK_DIFFERENCE = 60.0
"""Seconds by which Slack's clock, the source of every `ts`, may differ from ours."""


def _keep_newest(into: InsertInto) -> Executable:
    insert = into(early_replies)
    return insert.on_conflict_do_update(
        index_elements=[early_replies.c.channel_id, early_replies.c.message_ts],
        set_={
            name: insert.excluded[name]
            for name in ("text", "attachments", "edited_at", "withdrawn", "mentions_us", "word")
        },
        where=early_replies.c.edited_at < insert.excluded.edited_at,
    )


_KEEP = for_each_dialect(_keep_newest)


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
            kept = await session.rows(_THREAD_OF_KEPT, channel=reply.channel_id, written=reply.message_ts)
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


def _keep_newest_version(into: InsertInto) -> Executable:
    insert = into(message_versions)
    known, came = message_versions.c.edited_at, insert.excluded.edited_at
    return insert.on_conflict_do_update(
        index_elements=[message_versions.c.channel_id, message_versions.c.message_ts],
        set_={"edited_at": case((came > known, came), else_=known)},
    ).returning(known)


def _answer_newest(into: InsertInto) -> Executable:
    insert = into(message_versions)
    answered = message_versions.c.answered
    return insert.on_conflict_do_update(
        index_elements=[message_versions.c.channel_id, message_versions.c.message_ts],
        set_={"answered": insert.excluded.answered, "noted_at": insert.excluded.noted_at},
        where=or_(answered.is_(None), answered < insert.excluded.answered),
    )


_ANSWER = for_each_dialect(_answer_newest)
_NOTE = for_each_dialect(_keep_newest_version)


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
        return {
            "channel_id": version.channel_id,
            "message_ts": version.message_ts,
            "person_id": version.person_id,
            "edited_at": version.edited_at,
            "noted_at": self._session.now,
        }
