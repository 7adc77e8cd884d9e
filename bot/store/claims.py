"""Claims: taking due work so that nobody else takes it.

Each takes candidates in one statement, with locks that skip what others are taking (those of requests are looked up
before, in turn: `bot.store.turns`). Requests and notices, where a thread's order counts, are then claimed by a second
one that looks again: it sees what others committed before the first had its locks, and the locked threads keep
everybody out from then on.
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
    exists,
    or_,
    select,
    true,
    update,
)

from bot.domain.requests.request import RequestState
from bot.errors import UnreadableRow
from bot.store.schema.operator_tables import faults
from bot.store.schema.people_tables import homes
from bot.store.schema.tables import NoticeState, notices, polls, request_files, requests, threads
from bot.store.session import Session

C = TypeVar("C")
R = TypeVar("R")

NOW = bindparam("now", type_=Double)
LIMIT = bindparam("limit", type_=Integer)
CLAIM: dict[Any, Any] = {"claimed_by": bindparam("owner"), "claimed_until": bindparam("lease_end", type_=Double)}
FREE: dict[str, Any] = {"claimed_by": None, "claimed_until": None}


def due(table: FromClause) -> ColumnElement[bool]:
    """A row that may be claimed now: it is due, and no claim on it lasts."""
    return and_(table.c.due_at <= NOW, or_(table.c.claimed_until.is_(None), table.c.claimed_until <= NOW))


def first_of_thread(
    table: Table,
    place: Callable[[FromClause], ColumnElement[Any]],
    *,
    in_order: Callable[[FromClause], ColumnElement[bool]] = lambda _: true(),
    waits_for: Callable[[FromClause, FromClause], ColumnElement[bool]] = lambda _, __: true(),
) -> ColumnElement[bool]:
    """No other open row of the thread comes before this one or is under way. `in_order`: the rows that this is about;
    `waits_for`: whether the first of two waits for the second at all.
    """
    other = table.alias("other")
    before_or_under_way = or_(place(other) < place(table), other.c.claimed_until > NOW)
    return ~exists().where(
        other.c.thread_id == table.c.thread_id,
        other.c.due_at.is_not(None),
        in_order(other),
        in_order(table),
        waits_for(table, other),
        before_or_under_way,
    )


def candidates(table: Table, *conditions: ColumnElement[bool], also: Sequence[ColumnElement[Any]] = ()) -> Select[Any]:
    """Due rows with their threads and the `also` columns, locked, the most overdue first."""
    return (
        select(table, threads, *also)
        .join(threads, threads.c.id == table.c.thread_id)
        .where(due(table), *conditions)
        .order_by(table.c.due_at)
        .limit(LIMIT)
        .with_for_update(of=[table, threads], key_share=True, skip_locked=True)
    )


def claiming(table: Table, first: ColumnElement[bool], **values: Any) -> Update:
    """Claims those of the candidates that are still due and first, and counts the attempt."""
    return (
        update(table)
        .where(table.c.id.in_(bindparam("ids", expanding=True)), due(table), first)
        .values(**CLAIM, attempts=table.c.attempts + 1, **values)
        .returning(table)
    )


def claim_of(session: Session, owner: str, lease: float) -> dict[str, Any]:
    """The values of CLAIM."""
    return {"owner": owner, "lease_end": session.now + lease}


async def claim_candidates(
    session: Session,
    statement: Update,
    found: Sequence[RowMapping],
    claim: dict[str, Any],
    read: Callable[[RowMapping, RowMapping], C],
) -> tuple[list[C], list[RowMapping]]:
    """Claims candidates by a statement of `claiming`. `read` makes the results from each row as it was and as it is
    now; rows of which it cannot are ended, and returned beside the results.
    """
    if not found:
        return [], []
    table: Any = statement.table
    ids = [row[table.c.id] for row in found]
    claimed = await session.execute(statement, {"ids": ids, "now": session.now, **claim})
    now = {row[table.c.id]: row for row in claimed.mappings()}
    pairs = ((row_id, (row, now[row_id])) for row_id, row in zip(ids, found, strict=True) if row_id in now)
    readable, unreadable = read_each(pairs, lambda pair: read(*pair))
    await session.end_unreadable(table, unreadable)
    damaged = {row_id for row_id, _ in unreadable}
    return readable, [row for row in found if row[table.c.id] in damaged]


def read_each(
    items: Iterable[tuple[Any, R]], read: Callable[[R], C]
) -> tuple[list[C], list[tuple[Any, UnreadableRow]]]:
    """The readable results, and the ids of unreadable rows with the reasons."""
    readable: list[C] = []
    unreadable: list[tuple[Any, UnreadableRow]] = []
    for row_id, item in items:
        try:
            readable.append(read(item))
        except UnreadableRow as error:
            unreadable.append((row_id, error))
    return readable, unreadable


class SqlClaims:
    """ports.Claims."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def release(self, owner: str) -> None:
        session = self._session
        await session.execute(update(polls).where(_held_by(polls, owner)).values(**FREE))
        for table in (homes, request_files, faults):
            await session.execute(update(table).where(_held_by(table, owner)).values(**FREE))
        under_way = (RequestState.PREPARING, RequestState.SENDING)
        for table, states in ((notices, (NoticeState.SENDING,)), (requests, under_way)):
            await session.execute(
                update(table)
                .where(_held_by(table, owner), table.c.state.in_(states))
                .values(claimed_until=session.now, due_at=session.now)
            )


def _held_by(table: Table, owner: str) -> ColumnElement[bool]:
    # Only what is due can be claimed: so the index of due rows leads to them.
    return and_(table.c.due_at.is_not(None), table.c.claimed_by == owner)
