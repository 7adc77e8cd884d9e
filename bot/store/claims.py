"""Claims: takes due work so that nobody else takes it.

One statement selects and locks candidates, and skips those that others are taking (for requests, they are selected
beforehand, in turn: `bot.store.turns`). For requests and notices, whose order within a thread matters, a second
statement checks again before it claims: it sees what others committed before the first one had its locks, and the
locked threads keep everybody out from then on.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Table,
    Update,
    bindparam,
    update,
)

from bot.domain.requests.request import RequestState
from bot.errors import UnreadableRow
from bot.queue.claims import CLAIM, FREE, due, held_by
from bot.store.schema.tables import NoticeState, gaps, homes, notices, polls, pull_requests, request_files, requests
from bot.store.session import Part, Session

C = TypeVar("C")
R = TypeVar("R")

PATIENCE = 900.0
"""Seconds that a row of a kind which only a newer version knows is left to it; longer than a rolling restart."""
_PAUSE = 5.0
"""Seconds until it is looked at again, by whichever version."""


def claiming(table: Table, first: ColumnElement[bool], **values: Any) -> Update:
    """Claims the candidates that are still due and first, and counts the attempt unless `values` does."""
    return (
        update(table)
        .where(table.c.id.in_(bindparam("ids", expanding=True)), due(table), first)
        .values(CLAIM | {"attempts": table.c.attempts + 1} | values)
        .returning(table)
    )


async def leave_newer_kinds(
    session: Session,
    table: Table,
    found: Sequence[RowMapping],
    unknown_kind: Callable[[RowMapping], str | None],
) -> list[RowMapping]:
    """Returns the rows to work on, and postpones those of a kind that only a newer version knows, which counts as no
    attempt. During an upgrade, both versions work on one database; a row that stays is claimed in the end, and counts
    as unreadable.

    Args:
        session: The transaction, which has locked the rows.
        table: Their table.
        found: Rows that are due.
        unknown_kind: Returns a row's kind if it is unknown and still to be left to others.
    """
    kinds = {row[table.c.id]: kind for row in found if (kind := unknown_kind(row)) is not None}
    if not kinds:
        return list(found)
    postponed = update(table).where(table.c.id.in_(bindparam("ids", expanding=True)))
    await session.execute(postponed.values(due_at=session.now + _PAUSE), {"ids": list(kinds)})
    for kind in sorted(set(kinds.values())):
        session.rare_log.warning(f"{table.name.capitalize()} of a newer version of Pagehand are left to it (%s).", kind)
    return [row for row in found if row[table.c.id] not in kinds]


async def claim_candidates(
    session: Session,
    statement: Update,
    found: Sequence[RowMapping],
    read: Callable[[RowMapping, RowMapping], C],
    *,
    owner: str,
    lease: float,
) -> tuple[list[C], list[RowMapping]]:
    """Claims candidates with a statement of `claiming`. `read` makes each result from the row before and after the
    claim. Rows that it cannot read are ended and returned separately.
    """
    if not found:
        return [], []
    table: Any = statement.table
    ids = [row[table.c.id] for row in found]
    claim = {"owner": owner, "lease_end": session.now + lease}
    claimed = await session.execute(statement, {"ids": ids, "now": session.now, **claim})
    now = {row[table.c.id]: row for row in claimed.mappings()}
    session.takeovers += sum(row[table.c.claimed_by] is not None for row in found if row[table.c.id] in now)
    pairs = ((row_id, (row, now[row_id])) for row_id, row in zip(ids, found, strict=True) if row_id in now)
    readable, unreadable = read_each(pairs, lambda pair: read(*pair))
    await session.end_unreadable(table, unreadable)
    damaged = {row_id for row_id, _ in unreadable}
    return readable, [row for row in found if row[table.c.id] in damaged]


def read_each(
    items: Iterable[tuple[Any, R]], read: Callable[[R], C]
) -> tuple[list[C], list[tuple[Any, UnreadableRow]]]:
    """Returns the readable results, and the ids of unreadable rows with the reasons."""
    readable: list[C] = []
    unreadable: list[tuple[Any, UnreadableRow]] = []
    for row_id, item in items:
        try:
            readable.append(read(item))
        except UnreadableRow as error:
            unreadable.append((row_id, error))
    return readable, unreadable


class Claims(Part):
    """Claims of every kind."""

    async def release(self, owner: str) -> None:
        """Frees everything that `owner` holds. Polls keep their due times; notices and requests become due at once,
        as uncertain (use `settle` and `postpone` before for those that were not begun).
        """
        session = self._session
        for table in (polls, pull_requests, homes, request_files, gaps):
            await session.execute(update(table).where(held_by(table, owner)).values(**FREE))
        under_way = (RequestState.PREPARING, RequestState.SENDING)
        for table, states in ((notices, (NoticeState.SENDING,)), (requests, under_way)):
            await session.execute(
                update(table)
                .where(held_by(table, owner), table.c.state.in_(states))
                .values(claimed_until=session.now, due_at=session.now)
            )
