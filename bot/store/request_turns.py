"""Which requests can be claimed next: those to be prepared, and the first to be sent of each thread."""

from sqlalchemy import ColumnElement, FromClause, Select, and_, bindparam, exists, func, not_, or_, select

from bot.domain.requests.request import SENT_KINDS, RequestKind
from bot.store.claims import LIMIT, NOW, due
from bot.store.merged_requests import start_is_pending
from bot.store.request_parts import files_are_settled
from bot.store.schema.tables import TO_BE_PREPARED, TO_BE_SENT, requests, threads
from bot.store.turns import shares


def to_be_prepared(table: FromClause) -> ColumnElement[bool]:
    """A request that was received, or is being prepared."""
    return table.c.state.in_(TO_BE_PREPARED)


def to_be_sent(table: FromClause) -> ColumnElement[bool]:
    """A request that waits to be sent, or is being sent."""
    return table.c.state.in_(TO_BE_SENT)


def _oldest_of(person: ColumnElement[str], thread: ColumnElement[str]) -> Select[tuple[str]]:
    of_both = (_ROW.c.person_id == person, _ROW.c.thread_id == thread)
    return select(_ROW.c.id).where(to_be_prepared(_ROW), due(_ROW), *of_both).order_by(_ROW.c.due_at)


def _first_to_prepare(person: ColumnElement[str], thread: ColumnElement[str]) -> ColumnElement[str]:
    return _oldest_of(person, thread).limit(1).correlate_except(_ROW).scalar_subquery()


def _first_to_send(person: ColumnElement[str], thread: ColumnElement[str]) -> ColumnElement[str]:
    """The first of a thread, where it is this person's and can go out now."""
    can_go = or_(
        and_(_ROW.c.kind == RequestKind.START, threads.c.card_ts.is_not(None)),
        and_(_ROW.c.kind == RequestKind.FOLLOW_UP, threads.c.job_id.is_not(None), not_(start_is_pending(thread))),
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
    """The id of the first open request of a thread. A stop overtakes the follow-ups, and so does a wish to discard; a
    start that is still open has to end before there is something to stop.
    """
    return func.coalesce(*(_earliest(thread, kind) for kind in _IN_ORDER))


def _earliest(thread: ColumnElement[str], kind: RequestKind) -> ColumnElement[str]:
    row = requests.alias()
    of_kind = (row.c.thread_id == thread, row.c.kind == kind, row.c.due_at.is_not(None))
    ordered = select(row.c.id).where(*of_kind).order_by(row.c.written_at, row.c.recorded_at, row.c.id)
    return ordered.limit(1).correlate_except(row).scalar_subquery()


def under_way(thread: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether somebody has a request of the thread."""
    other = requests.alias("under_way")
    found = exists().where(other.c.thread_id == thread, other.c.claimed_until > NOW, other.c.kind.in_(SENT_KINDS))
    return found.correlate_except(other)


_IN_ORDER = (RequestKind.START, RequestKind.STOP, RequestKind.DISCARD, RequestKind.FOLLOW_UP)
_ROW = requests.alias("found")
RECEIVED = shares(to_be_prepared, _first_to_prepare)
RECEIVED_OF = _oldest_of(bindparam("person"), bindparam("thread")).limit(LIMIT)
WAITING = shares(to_be_sent, _first_to_send)
