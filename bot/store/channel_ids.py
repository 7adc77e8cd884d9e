"""The ids of channels whose id Slack changed."""

from collections.abc import Sequence

from sqlalchemy import Executable, Text, bindparam, func, select, update

from bot.store.schema.tables import channel_ids
from bot.store.session import InsertInto, Part, for_each_dialect

_LOCK = select(func.pg_advisory_xact_lock(7_402))
"""The key of the lock under which changes are recorded one at a time, so that each builds on the one before it."""
_MOST = 50
"""The most ids of one channel that are read."""
_CHANNEL = bindparam("channel", type_=Text)
_KNOWN_AS = select(channel_ids.c.known_as).where(channel_ids.c.channel_id == _CHANNEL).scalar_subquery()
_ALL = (
    select(channel_ids.c.channel_id, channel_ids.c.known_as)
    .where(channel_ids.c.known_as == func.coalesce(_KNOWN_AS, _CHANNEL))
    .order_by(channel_ids.c.known_as, channel_ids.c.changed_at)
    .limit(_MOST)
)
_JOIN = update(channel_ids).where(channel_ids.c.known_as == bindparam("joined")).values(known_as=bindparam("first"))


def _keep_newest(into: InsertInto) -> Executable:
    insert = into(channel_ids)
    return insert.on_conflict_do_update(
        index_elements=[channel_ids.c.channel_id],
        set_={"changed_at": insert.excluded.changed_at},
        where=channel_ids.c.changed_at < insert.excluded.changed_at,
    )


_KEEP = for_each_dialect(_keep_newest)


class ChannelIds(Part):
    """The ids of channels whose id Slack changed."""

    async def changed(self, old: str, new: str, at: float) -> None:
        """Records that a channel has another id since a time; in any order, and any number of times."""
        session = self._session
        if session.dialect == "postgresql":  # a transaction in SQLite has the whole database to itself
            await session.execute(_LOCK)
        (first, *_), (joined, *_) = await self.all_of(old), await self.all_of(new)
        if joined != first:
            await session.execute(_JOIN, {"joined": joined, "first": first})
            await self._keep(joined, first, 0.0)
        await self._keep(old, first, 0.0)
        await self._keep(new, first, at)

    async def all_of(self, channel_id: str) -> Sequence[str]:
        """Returns all ids of a channel, given any: first the one that rows use, last the newest."""
        rows = await self._session.rows(_ALL, channel=channel_id)
        if not rows:
            return (channel_id,)
        first, ids = rows[0][channel_ids.c.known_as], [row[channel_ids.c.channel_id] for row in rows]
        return (first, *(each for each in ids if each != first or each == ids[-1]))

    async def _keep(self, channel_id: str, first: str, at: float) -> None:
        values = {"channel_id": channel_id, "known_as": first, "changed_at": at, "recorded_at": self._session.now}
        await self._session.execute(_KEEP, values)
