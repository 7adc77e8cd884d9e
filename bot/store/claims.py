"""Claims: taking due work so that nobody else takes it.

Each takes candidates in one statement, with locks that skip what others are taking. Requests and notices, where a
thread's order counts, are then claimed by a second one that looks again: it sees what others committed before the first
had its locks, and the locked threads keep everybody out from then on.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Double,
    FromClause,
    Integer,
    RowMapping,
    Select,
    Table,
    Update,
    and_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    tuple_,
    update,
)

from bot.domain.models import NoticeKind, RequestKind, RequestState, Saying, What
from bot.errors import UnreadableRow
from bot.ports import ClaimedNotice, ClaimedRequest, ClaimedWatch
from bot.store.rows import notice_from, notice_values, request_from, thread_from, thread_to_speak_in
from bot.store.session import Session
from bot.store.tables import NoticeState, notices, requests, threads, watches

C = TypeVar("C")
R = TypeVar("R")

_NOW = bindparam("now", type_=Double)
_LIMIT = bindparam("limit", type_=Integer)
_CLAIM: dict[Any, Any] = {"claimed_by": bindparam("owner"), "claimed_until": bindparam("lease_end", type_=Double)}


def _due(table: FromClause) -> ColumnElement[bool]:
    return and_(table.c.due_at <= _NOW, or_(table.c.claimed_until.is_(None), table.c.claimed_until <= _NOW))


def _first_of_thread(table: Table, place: Callable[[FromClause], ColumnElement[Any]]) -> ColumnElement[bool]:
    """No other open row of the thread comes before this one or is under way."""
    other = table.alias("other")
    before_or_under_way = or_(place(other) < place(table), other.c.claimed_until > _NOW)
    return ~exists().where(other.c.thread_id == table.c.thread_id, other.c.due_at.is_not(None), before_or_under_way)


def _request_place(table: FromClause) -> ColumnElement[Any]:
    start_first = case((table.c.kind == RequestKind.START, 0), else_=1)
    return tuple_(start_first, table.c.written_at, table.c.recorded_at, table.c.id)


def _candidates(table: Table, *conditions: ColumnElement[bool]) -> Select[Any]:
    return (
        select(table, threads)
        .join(threads, threads.c.id == table.c.thread_id)
        .where(_due(table), *conditions)
        .order_by(table.c.due_at)
        .limit(_LIMIT)
        .with_for_update(of=[table, threads], key_share=True, skip_locked=True)
    )


def _taking(table: Table, first: ColumnElement[bool], **values: Any) -> Update:
    return (
        update(table)
        .where(table.c.id.in_(bindparam("ids", expanding=True)), _due(table), first)
        .values(**_CLAIM, attempts=table.c.attempts + 1, **values)
        .returning(table)
    )


_FIRST_REQUEST = _first_of_thread(requests, _request_place)
_REQUESTS = _candidates(
    requests,
    _FIRST_REQUEST,
    or_(
        and_(requests.c.kind == RequestKind.START, threads.c.ts.is_not(None)),
        and_(requests.c.kind == RequestKind.FOLLOW_UP, threads.c.job_id.is_not(None)),
    ),
)
_TAKE_REQUESTS = _taking(
    requests,
    _FIRST_REQUEST,
    state=RequestState.SENDING,
    first_tried_at=func.coalesce(requests.c.first_tried_at, _NOW),
)
_FIRST_NOTICE = _first_of_thread(notices, lambda table: table.c.id)
_NOTICES = _candidates(notices, _FIRST_NOTICE, threads.c.channel_id.not_in(bindparam("held_channels", expanding=True)))
_TAKE_NOTICES = _taking(
    notices,
    _FIRST_NOTICE,
    state=NoticeState.SENDING,
    uncertain=or_(notices.c.uncertain, notices.c.state == NoticeState.SENDING),
)
_WATCHES = (
    select(threads)
    .join(watches, watches.c.thread_id == threads.c.id)
    .where(_due(watches))
    .order_by(watches.c.due_at)
    .limit(_LIMIT)
    .with_for_update(of=watches, skip_locked=True)
)
_TAKE_WATCHES = update(watches).where(watches.c.thread_id.in_(bindparam("ids", expanding=True))).values(**_CLAIM)


class Claims(Session):
    """The methods of Transaction under "claims"."""

    async def claim_requests(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedRequest]:
        """Takes due requests (see the port)."""
        candidates = await self._rows(_REQUESTS, now=self._now, limit=limit)

        def claimed(before: RowMapping, now: RowMapping) -> ClaimedRequest:
            uncertain = before[requests.c.state] == RequestState.SENDING
            return ClaimedRequest(request_from(now), thread_from(before), uncertain)

        return await self._take(requests, _TAKE_REQUESTS, candidates, self._lease(owner, lease), claimed)

    async def claim_notices(
        self, owner: str, *, lease: float, limit: int, held_channels: Sequence[str] = ()
    ) -> Sequence[ClaimedNotice]:
        """Takes due notices (see the port), and counts the attempt."""
        candidates = await self._rows(_NOTICES, now=self._now, limit=limit, held_channels=list(held_channels))

        def claimed(before: RowMapping, now: RowMapping) -> ClaimedNotice:
            notice = notice_from(now)
            # A card shows what is known of the job; anything else can be said without that.
            thread = thread_from(before) if notice.kind is NoticeKind.CARD else thread_to_speak_in(before)
            return ClaimedNotice(notice, thread)

        return await self._take(notices, _TAKE_NOTICES, candidates, self._lease(owner, lease), claimed)

    async def claim_watches(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedWatch]:
        """Takes watches that are due and that nobody holds, the most overdue first."""
        candidates = await self._rows(_WATCHES, now=self._now, limit=limit)
        if not candidates:
            return []
        claimed, unreadable = _sorted_out(
            ((row[threads.c.id], row) for row in candidates), lambda row: ClaimedWatch(thread_from(row))
        )
        ids = [watch.thread.id for watch in claimed]
        await self._connection.execute(_TAKE_WATCHES, {"ids": ids, **self._lease(owner, lease)})
        await self._set_aside(watches, unreadable)
        for thread_id, _ in unreadable:
            await self._say(thread_id, Saying("damaged", What.DAMAGED))
        return claimed

    def _lease(self, owner: str, lease: float) -> dict[str, Any]:
        return {"owner": owner, "lease_end": self._now + lease}

    async def _take(
        self,
        table: Table,
        statement: Update,
        candidates: Sequence[RowMapping],
        lease: dict[str, Any],
        claimed: Callable[[RowMapping, RowMapping], C],
    ) -> list[C]:
        """Claims candidates; `claimed` makes the results from each row as it was and as it is now."""
        if not candidates:
            return []
        ids = [row[table.c.id] for row in candidates]
        taken = await self._connection.execute(statement, {"ids": ids, "now": self._now, **lease})
        now = {row[table.c.id]: row for row in taken.mappings()}
        pairs = ((row_id, (row, now[row_id])) for row_id, row in zip(ids, candidates, strict=True) if row_id in now)
        readable, unreadable = _sorted_out(pairs, lambda pair: claimed(*pair))
        await self._set_aside(table, unreadable)
        if table is requests:
            damaged = {row_id for row_id, _ in unreadable}
            await self._tell([row for row in candidates if row[table.c.id] in damaged])
        return readable

    async def _tell(self, damaged: Sequence[RowMapping]) -> None:
        """Records that requests which can't be read, or whose threads can't, were not sent."""
        for row in damaged:
            facts = {"person": str(row[requests.c.person_id]), "reason": "unreadable"}
            await self._say(row[threads.c.id], Saying(f"{row[requests.c.id]}/unreadable", What.REFUSED, facts))

    async def _say(self, thread_id: str, saying: Saying) -> None:
        values = notice_values(thread_id, saying, self._now)
        await self._connection.execute(self._insert(notices).values(values).on_conflict_do_nothing())


def _sorted_out(
    items: Iterable[tuple[Any, R]], read: Callable[[R], C]
) -> tuple[list[C], list[tuple[Any, UnreadableRow]]]:
    """What could be read, and the ids of what could not, with the reasons."""
    readable: list[C] = []
    unreadable: list[tuple[Any, UnreadableRow]] = []
    for row_id, item in items:
        try:
            readable.append(read(item))
        except UnreadableRow as error:
            unreadable.append((row_id, error))
    return readable, unreadable
