"""Removal: what is old and finished, and what somebody wants forgotten."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Double, Table, bindparam, delete, exists, or_, select, true, tuple_
from sqlalchemy.engine import CursorResult

from bot.domain.models import RequestKind
from bot.store.session import Session
from bot.store.tables import early_replies, notices, requests, threads, watches

_BEFORE = bindparam("before", type_=Double)
_OPEN = [
    exists().where(table.c.thread_id == threads.c.id, table.c.due_at.is_not(None), condition)
    for table, condition in (
        (watches, true()),
        (notices, true()),
        # A follow-up without a job waits for a person to send the start again: after so long, nobody will.
        (
            requests,
            or_(
                requests.c.kind == RequestKind.START,
                threads.c.job_id.is_not(None),
                requests.c.recorded_at >= _BEFORE,
            ),
        ),
    )
]
_FINISHED = (
    select(threads.c.id)
    .where(threads.c.touched_at < _BEFORE, *(~is_open for is_open in _OPEN))
    .order_by(threads.c.touched_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)


class Removal(Session):
    """The methods of Transaction under "removal". A thread takes its watch, requests and notices with it."""

    async def remove_finished(self, *, before: float, limit: int) -> int:
        """Deletes threads that are finished and old (see the port)."""
        found = await self._rows(_FINISHED, before=before, limit=limit)
        ids = [row[threads.c.id] for row in found]
        if ids:
            await self._connection.execute(delete(threads).where(threads.c.id.in_(ids)))
        return len(ids)

    async def forget(self, *, person_id: str = "", channel_id: str = "", limit: int) -> Mapping[str, int]:
        """Deletes what there is of a person or a channel (see the port)."""
        if person_id:
            named = notices.c.facts.contains(f'"person":"{person_id}"', autoescape=True)
            conditions: dict[Table, ColumnElement[bool]] = {
                threads: threads.c.asker_id == person_id,
                requests: requests.c.person_id == person_id,
                notices: named,
                early_replies: early_replies.c.person_id == person_id,
            }
        else:
            conditions = {
                threads: threads.c.channel_id == channel_id,
                early_replies: early_replies.c.channel_id == channel_id,
            }
        return {table.name: await self._delete(table, condition, limit) for table, condition in conditions.items()}

    async def _delete(self, table: Table, condition: ColumnElement[bool], limit: int) -> int:
        key = tuple_(*table.primary_key)
        some = select(*table.primary_key).where(condition).limit(limit)
        deleted: CursorResult[Any] = await self._connection.execute(delete(table).where(key.in_(some)))
        return deleted.rowcount
