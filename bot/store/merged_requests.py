"""How requests of a thread relate: which ones are sent together, and which stops come between them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    FromClause,
    RowMapping,
    Text,
    bindparam,
    func,
    literal_column,
    not_,
    or_,
    select,
    tuple_,
    update,
)

from bot.domain.notices import keys
from bot.domain.notices.messages import NewNotice
from bot.domain.notices.posts import RequestRejected, RequestSummary
from bot.domain.requests.request import NOT_SENT_YET, RejectionReason, Request, RequestKind, RequestState
from bot.errors import UnreadableRow
from bot.store.claims import FREE, read_each
from bot.store.notices import SqlNotices
from bot.store.request_parts import FILES_ARE_SETTLED
from bot.store.schema.rows import request_from
from bot.store.schema.tables import requests, threads
from bot.store.session import Session

THREAD_OF = select(requests.c.thread_id).where(requests.c.id == bindparam("request"))


def written(row: FromClause) -> tuple[ColumnElement[Any], ...]:
    """Returns the columns by which requests are in the order they were written; no two have the same values."""
    return (row.c.written_at, row.c.recorded_at, row.c.id)


WRITTEN = written(requests)
_WAITING_FOLLOW_UPS = (
    select(requests)
    .where(
        requests.c.thread_id == bindparam("thread"),
        requests.c.kind == RequestKind.FOLLOW_UP,
        requests.c.state.in_(NOT_SENT_YET),
    )
    .order_by(*WRITTEN)
)
_ON_THEIR_WAY = (
    select(requests)
    .where(
        requests.c.thread_id == bindparam("thread"),
        requests.c.due_at.is_not(None),
        requests.c.kind.in_((RequestKind.START, RequestKind.FOLLOW_UP)),
        requests.c.state.in_((RequestState.WAITING, RequestState.SENDING)),
    )
    .order_by(*WRITTEN)
)
_FOLLOWING = (
    _WAITING_FOLLOW_UPS.add_columns(FILES_ARE_SETTLED.label("settled"))
    .where(
        requests.c.due_at.is_not(None),
        tuple_(*WRITTEN) > tuple_(bindparam("written"), bindparam("recorded", type_=Double), bindparam("after")),
    )
    .limit(bindparam("limit"))
)
_SEVERAL_WAIT = (
    select(requests.c.id)
    .where(
        requests.c.thread_id == bindparam("thread"),
        requests.c.due_at.is_not(None),
        requests.c.kind == RequestKind.FOLLOW_UP,
        requests.c.state.in_(NOT_SENT_YET),
    )
    .limit(2)
)
_MERGED = (
    select(requests)
    .where(requests.c.thread_id == bindparam("thread"), requests.c.merged_into == bindparam("first"))
    .order_by(*WRITTEN)
    .with_for_update()
)
_STOPS = (
    select(requests)
    .where(requests.c.thread_id == bindparam("thread"), requests.c.kind == RequestKind.STOP)
    .order_by(requests.c.recorded_at, requests.c.id)
)


_MOVED_KINDS = [kind for kind in RequestKind if kind not in {RequestKind.START, RequestKind.CHOOSE_PROJECT}]
_UNSENT = (
    select(requests)
    .where(
        requests.c.thread_id == bindparam("thread"),
        requests.c.kind.in_(_MOVED_KINDS),
        requests.c.state.in_((*NOT_SENT_YET, RequestState.AWAITING_PERSON)),
        not_(requests.c.uncertain),
    )
    .order_by(*WRITTEN)
    .with_for_update()
)
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


_PENDING = select(start_is_pending(bindparam("thread", type_=Text)).label("pending"))


class MergedRequests:
    """The part of ports.RequestQueue for merged requests."""

    def __init__(self, session: Session, notices: SqlNotices) -> None:
        self._session = session
        self._notices = notices

    async def waiting_follow_ups(self, thread_id: str) -> Sequence[Request]:
        rows = await self._session.rows(_WAITING_FOLLOW_UPS, thread=thread_id)
        readable, unreadable = read_each(((row[requests.c.id], row) for row in rows), request_from)
        await self._session.end_unreadable(requests, unreadable)
        return readable

    async def merge(self, first: Request, others: Sequence[Request], owner: str, *, lease: float) -> None:
        values: dict[str, Any] = {
            "merged_into": first.id,
            "uncertain": or_(requests.c.uncertain, requests.c.state == RequestState.SENDING),
            "state": RequestState.SENDING,
            "attempts": requests.c.attempts + 1,
            "first_tried_at": func.coalesce(requests.c.first_tried_at, self._session.now),
            "due_at": func.coalesce(requests.c.due_at, self._session.now),
            "claimed_by": owner,
            "claimed_until": self._session.now + lease,
        }
        ids = [request.id for request in others]
        await self._session.execute(update(requests).where(requests.c.id.in_(ids)).values(values))

    async def merged_into(self, request_id: str) -> Sequence[Request]:
        for row in await self._session.rows(THREAD_OF, request=request_id):
            found = await self._session.rows(_MERGED, thread=row[requests.c.thread_id], first=request_id)
            return await self._readable(found)
        return []

    async def _readable(self, rows: Sequence[RowMapping]) -> Sequence[Request]:
        """Returns the requests of these rows; ends unreadable ones and tells their people."""
        readable, unreadable = read_each(((row[requests.c.id], row) for row in rows), request_from)
        await self._session.end_unreadable(requests, unreadable)
        ended = {row_id for row_id, _ in unreadable}
        told = [(row[requests.c.thread_id], unreadable_notice(row)) for row in rows if row[requests.c.id] in ended]
        await self._notices.insert(told)
        return readable

    async def unmerge(self, request_id: str) -> None:
        for row in await self._session.rows(THREAD_OF, request=request_id):
            among = (requests.c.thread_id == row[requests.c.thread_id], requests.c.merged_into == request_id)
            await self._session.execute(update(requests).where(*among).values(merged_into=""))

    async def several_wait(self, thread_id: str) -> bool:
        return len(await self._session.rows(_SEVERAL_WAIT, thread=thread_id)) > 1

    async def follow_ups_after(self, first: Request, *, limit: int) -> Sequence[Request]:
        found: list[Request] = []
        after = {"written": first.written_at, "recorded": first.recorded_at, "after": first.id}
        for row in await self._session.rows(_FOLLOWING, thread=first.thread_id, limit=limit, **after):
            if not row["settled"]:
                break
            try:
                found.append(request_from(row))
            except UnreadableRow:
                break  # reported when its turn to be sent comes
        return found

    async def on_their_way(self, thread_id: str) -> Sequence[Request]:
        rows = await self._session.rows(_ON_THEIR_WAY, thread=thread_id)
        return read_each(((row[requests.c.id], row) for row in rows), request_from)[0]

    async def unsent(self, thread_id: str) -> Sequence[Request]:
        return await self._readable(await self._session.rows(_UNSENT, thread=thread_id))

    async def has_pending_start(self, thread_id: str) -> bool:
        (row,) = await self._session.rows(_PENDING, thread=thread_id)
        return bool(row["pending"])

    async def move(self, unsent: Sequence[Request], thread_id: str) -> None:
        for request in unsent:
            held = request.state is RequestState.AWAITING_PERSON
            values: dict[str, Any] = {
                "thread_id": thread_id,
                "state": request.state if held else RequestState.RECEIVED,
                "due_at": None if held else self._session.now,
                "attempts": 0,
                "first_tried_at": None,
                "merged_into": "",
                **FREE,
            }
            await self._session.execute(update(requests).where(requests.c.id == request.id).values(values))
            await self._notices.move(keys.reaction(request), request.thread_id, thread_id)

    async def stops(self, thread_id: str) -> Sequence[Request]:
        rows = await self._session.rows(_STOPS, thread=thread_id)
        return read_each(((row[requests.c.id], row) for row in rows), request_from)[0]


def unreadable_notice(row: RowMapping) -> NewNotice:
    """Returns the notice that a request was not sent because it, or its thread, cannot be read."""
    request = RequestSummary(row[requests.c.id], str(row[requests.c.person_id]), kind=None)
    return NewNotice(keys.request_unreadable(request.request_id), RequestRejected(request, RejectionReason.UNREADABLE))
