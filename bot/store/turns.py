"""The order of requests: claimed round robin by person, and for each person by thread.

People and threads with open requests are found by skipping from one to the next in an index, so the number of a
person's requests in a thread does not matter. Each claim begins with a random person and thread.
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
    exists,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    union_all,
)

from bot.domain.requests.request import SENT_KINDS, RequestKind, RequestState
from bot.queue.claims import LIMIT, NOW, due
from bot.store.gaps import waits_for_history
from bot.store.request_parts import files_are_settled
from bot.store.schema.tables import requests, threads, to_be_prepared, to_be_sent
from bot.store.session import Session
from bot.store.slack_calls import posts_fail


def written(row: FromClause) -> tuple[ColumnElement[Any], ...]:
    """Returns the columns by which requests are in the order they were written; no two have the same values."""
    return (row.c.written_at, row.c.recorded_at, row.c.id)


WRITTEN = written(requests)

_followers, _starts = threads.alias("followers"), requests.alias("starts")


def start_is_pending(thread_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Returns the condition that a job that will follow the thread's job has not passed its checks yet."""
    pending = select(_starts.c.id).where(
        _followers.c.follows == thread_id,
        _followers.c.follows != literal_column("''"),  # as in the index
        _starts.c.thread_id == _followers.c.id,
        _starts.c.kind == RequestKind.START,
        _starts.c.state.in_((RequestState.RECEIVED, RequestState.PREPARING)),
    )
    # The limit keeps PostgreSQL from collecting all followers of all threads first.
    pending = pending.limit(literal_column("1")).correlate_except(_followers, _starts)
    return pending.scalar_subquery().is_not(None)


Phase = Callable[[FromClause], ColumnElement[bool]]
"""The requests to consider; an index of (person_id, thread_id, due_at) contains exactly those."""
First = Callable[[ColumnElement[str], ColumnElement[str]], ColumnElement[str]]
"""The id of the claimable request of a person in a thread; NULL if there is none."""

_TURNS = 1_000_000
_TURN = bindparam("turn", type_=Integer)
_BEGIN = bindparam("begin", type_=Text)
_MOST = bindparam("most", type_=Integer)


@dataclass(frozen=True)
class Share:
    """A person's thread, with the id of their first request there."""

    first: str
    person_id: str
    thread_id: str


def shares(phase: Phase, first: First) -> Select[Any]:
    """Selects each person's first requests, in at most `most` threads each: one per person, then another one each."""
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
    """Selects everybody who has open requests, each with a position that depends on `turn`."""
    row, after = requests.alias("of_somebody"), requests.alias("of_the_next")
    people = select(func.min(row.c.person_id).label("person_id")).where(phase(row)).cte("people", recursive=True)
    following = select(func.min(after.c.person_id)).where(phase(after), after.c.person_id > people.c.person_id)
    people = people.union_all(select(following.scalar_subquery()).where(people.c.person_id.is_not(None)))
    how_many = func.count().over()
    place = (func.row_number().over(order_by=people.c.person_id) + how_many * _TURN // _TURNS) % how_many
    return select(people.c.person_id, place.label("place")).where(people.c.person_id.is_not(None)).cte("in_turn")


def _walks(phase: Phase, people: CTE) -> CTE:
    """Walks through each person's threads twice: from `begin` to the last, and `again` from the first to `begin`."""
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


async def find_shares(
    session: Session, statement: Select[Any], *, turn: float, limit: int, most: int, **more: object
) -> list[Share]:
    """Selects requests in turn. `turn` is from 0 to 1; at most `most` threads of each person are considered; `more` are
    the statement's other parameters.
    """
    person, thread = divmod(turn * _TURNS, 1.0)  # each is independent of the other
    values = {
        "turn": int(person),
        "begin": f"{int(thread * 0xFFFFFFFF):08x}",
        "limit": limit,
        "most": most,
        "now": session.now,
    }
    rows = await session.rows(statement, **values, **more)
    return [Share(row["first"], row["person_id"], row["thread_id"]) for row in rows]


def in_turn(of_each: Sequence[Sequence[str]]) -> list[str]:
    """Orders rows: the first of each person, the second of each, and so on."""
    return [each for several in zip_longest(*of_each) for each in several if each is not None]


def _oldest_of(person: ColumnElement[str], thread: ColumnElement[str]) -> Select[tuple[str]]:
    """Selects in the order of their turns; those that became due together, by when they were written."""
    of_both = (_ROW.c.person_id == person, _ROW.c.thread_id == thread)
    ready = (to_be_prepared(_ROW), due(_ROW), ~waits_for_history(_ROW))
    in_order = (_ROW.c.due_at, *written(_ROW))
    return select(_ROW.c.id).where(*ready, *of_both).order_by(*in_order)


def _first_to_prepare(person: ColumnElement[str], thread: ColumnElement[str]) -> ColumnElement[str]:
    return _oldest_of(person, thread).limit(1).correlate_except(_ROW).scalar_subquery()


def _goes_ahead() -> ColumnElement[bool]:
    """Returns the condition that a start is sent before its card is posted. One that may have arrived has gone ahead
    already. One that follows another job takes its place with its card.
    """
    of_project = or_(
        threads.c.project.in_(bindparam("ahead", expanding=True)),
        and_(threads.c.project.in_(bindparam("ahead_in_threads", expanding=True)), threads.c.ts.is_not(None)),
    )
    may_have_arrived = or_(_ROW.c.uncertain, _ROW.c.state == RequestState.SENDING)
    return or_(may_have_arrived, and_(of_project, threads.c.follows == "", not_(posts_fail(threads.c.channel_id))))


def _first_to_send(person: ColumnElement[str], thread: ColumnElement[str]) -> ColumnElement[str]:
    """Selects the first request of a thread if it is this person's and can be sent now."""
    has_card = threads.c.card_ts.is_not(None)
    has_job = and_(threads.c.job_id.is_not(None), has_card, not_(start_is_pending(thread)))
    can_go = or_(
        and_(_ROW.c.kind == RequestKind.START, or_(has_card, _goes_ahead())),
        and_(_ROW.c.kind.in_((RequestKind.FOLLOW_UP, RequestKind.ACCEPT_PROPOSAL)), has_job),
        _ROW.c.kind.in_((RequestKind.STOP, RequestKind.DISCARD)),
    )
    found = select(_ROW.c.id).join(threads, threads.c.id == _ROW.c.thread_id).where(_ROW.c.id == first_open_of(thread))
    ready = found.where(
        _ROW.c.person_id == person,
        to_be_sent(_ROW),
        _ROW.c.merged_into == "",
        files_are_settled(_ROW),
        due(_ROW),
        can_go,
        ~under_way(thread),
    )
    return ready.correlate_except(_ROW, threads).scalar_subquery()


def first_open_of(thread: ColumnElement[str]) -> ColumnElement[str]:
    """Selects the id of the first open request of a thread. Stops and discards overtake follow-ups, but an open start
    has to end before there is anything to stop.
    """
    return func.coalesce(*(_earliest(thread, kind) for kind in _IN_ORDER))


def _earliest(thread: ColumnElement[str], kind: RequestKind) -> ColumnElement[str]:
    row = requests.alias()
    of_kind = (row.c.thread_id == thread, row.c.kind == kind, row.c.due_at.is_not(None))
    ordered = select(row.c.id).where(*of_kind).order_by(*written(row))
    return ordered.limit(1).correlate_except(row).scalar_subquery()


def under_way(thread: ColumnElement[str]) -> ColumnElement[bool]:
    """Returns the condition that a person has an open request in the thread."""
    other = requests.alias("under_way")
    found = exists().where(other.c.thread_id == thread, other.c.claimed_until > NOW, other.c.kind.in_(SENT_KINDS))
    return found.correlate_except(other)


_IN_ORDER = (
    RequestKind.START,
    RequestKind.STOP,
    RequestKind.DISCARD,
    RequestKind.ACCEPT_PROPOSAL,
    RequestKind.FOLLOW_UP,
)
_ROW = requests.alias("found")
RECEIVED = shares(to_be_prepared, _first_to_prepare)
RECEIVED_OF = _oldest_of(bindparam("person"), bindparam("thread")).limit(LIMIT)
WAITING = shares(to_be_sent, _first_to_send)
