"""Whose turn it is: requests are claimed round robin by person, and those of each person by thread.

People and threads with something open are found by going from one to the next in an index: so it does not count how
much of it a person has in a thread. Each claim begins with somebody else, and in another thread, by a random number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    func,
    literal,
    or_,
    select,
    union_all,
)

from bot.store.claims import LIMIT
from bot.store.schema.tables import requests
from bot.store.session import Session

Phase = Callable[[FromClause], ColumnElement[bool]]
"""Which requests it is about; an index of (person_id, thread_id, due_at) has those alone."""
First = Callable[[ColumnElement[str], ColumnElement[str]], ColumnElement[str]]
"""The id of the one that can be claimed of a person in a thread; NULL where none can."""

_TURNS = 1_000_000
_TURN = bindparam("turn", type_=Integer)
_BEGIN = bindparam("begin", type_=Text)
_MOST = bindparam("most", type_=Integer)


@dataclass(frozen=True)
class Share:
    """What somebody wants in a thread: the id of the request that is first there."""

    first: str
    person_id: str
    thread_id: str


def shares(phase: Phase, first: First) -> Select[Any]:
    """Each person's first requests, of at most `most` threads a person: one of each person, then another of each."""
    walks = _walks(phase, _people(phase))
    found = select(
        first(walks.c.person_id, walks.c.thread_id).label("first"),
        walks.c.person_id,
        walks.c.thread_id,
        walks.c.number,
        walks.c.again,
        walks.c.place,
    ).where(walks.c.thread_id.is_not(None), or_(walks.c.again == 0, walks.c.thread_id <= _BEGIN))
    each = found.subquery("each_share")
    nth = func.row_number().over(partition_by=each.c.person_id, order_by=(each.c.again, each.c.number))
    columns = (each.c.first, each.c.person_id, each.c.thread_id, each.c.place, nth.label("nth"))
    in_order = select(*columns).where(each.c.first.is_not(None)).subquery("in_order")
    wanted = select(in_order.c.first, in_order.c.person_id, in_order.c.thread_id)
    return wanted.order_by(in_order.c.nth, in_order.c.place).limit(LIMIT)


def _people(phase: Phase) -> CTE:
    """Everybody who has something open, each with a place, which is another one with each `turn`."""
    row, after = requests.alias("of_somebody"), requests.alias("of_the_next")
    people = select(func.min(row.c.person_id).label("person_id")).where(phase(row)).cte("people", recursive=True)
    following = select(func.min(after.c.person_id)).where(phase(after), after.c.person_id > people.c.person_id)
    people = people.union_all(select(following.scalar_subquery()).where(people.c.person_id.is_not(None)))
    how_many = func.count().over()
    place = (func.row_number().over(order_by=people.c.person_id) + how_many * _TURN // _TURNS) % how_many
    return select(people.c.person_id, place.label("place")).where(people.c.person_id.is_not(None)).cte("in_turn")


def _walks(phase: Phase, people: CTE) -> CTE:
    """Two walks through each person's threads: from `begin` to the last, and `again` from the first one to `begin`."""
    row, after = requests.alias("of_a_thread"), requests.alias("of_another")
    ways = union_all(
        select(literal(0).label("again"), _BEGIN.label("after")), select(literal(1), literal("", Text))
    ).subquery("ways")
    first = select(func.min(row.c.thread_id)).where(
        phase(row), row.c.person_id == people.c.person_id, row.c.thread_id > ways.c.after
    )
    walks = (
        select(
            people.c.person_id,
            people.c.place,
            ways.c.again,
            literal(0).label("number"),
            first.scalar_subquery().label("thread_id"),
        )
        .select_from(people.join(ways, literal(1) == 1))
        .cte("walks", recursive=True)
    )
    following = select(func.min(after.c.thread_id)).where(
        phase(after), after.c.person_id == walks.c.person_id, after.c.thread_id > walks.c.thread_id
    )
    goes_on = and_(
        walks.c.thread_id.is_not(None),
        walks.c.number < _MOST,
        or_(walks.c.again == 0, walks.c.thread_id <= _BEGIN),
    )
    further = (walks.c.person_id, walks.c.place, walks.c.again, walks.c.number + 1, following.scalar_subquery())
    return walks.union_all(select(*further).where(goes_on))


async def find_shares(session: Session, statement: Select[Any], *, turn: float, limit: int, most: int) -> list[Share]:
    """Who wants what, in turn. `turn` is from 0 to 1, `most` how many threads of each person are looked at."""
    person, thread = divmod(turn * _TURNS, 1.0)  # neither tells anything about the other
    values = {
        "turn": int(person),
        "begin": f"{int(thread * 0xFFFFFFFF):08x}",
        "limit": limit,
        "most": most,
        "now": session.now,
    }
    rows = await session.rows(statement, **values)
    return [Share(row["first"], row["person_id"], row["thread_id"]) for row in rows]


def in_turn(of_each: Sequence[Sequence[str]]) -> list[str]:
    """The first of each, the second of each, and so on."""
    return [each for several in zip_longest(*of_each) for each in several if each is not None]
