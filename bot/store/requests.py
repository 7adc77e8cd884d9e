"""What people asked for: recording, reading and changing it."""

import logging
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Boolean,
    Double,
    RowMapping,
    bindparam,
    case,
    delete,
    func,
    not_,
    or_,
    select,
    update,
)

from bot.domain.requests.request import NOT_SENT_YET, RejectionReason, Request, RequestKind, RequestState
from bot.notices.notice import NewNotice, ReactionChanged
from bot.notices.requests import RequestRejected, RequestSummary
from bot.store.claims import FREE, read_each
from bot.store.notices import Notices
from bot.store.people import home_changed
from bot.store.request_parts import due_again
from bot.store.schema.rows import attachments_json, request_from, request_values
from bot.store.schema.tables import requests, threads
from bot.store.session import Session, adding
from bot.store.turns import WRITTEN

logger = logging.getLogger(__name__)

THREAD_OF = select(requests.c.thread_id).where(requests.c.id == bindparam("request"))
WAITING_FOLLOW_UPS = (
    select(requests)
    .where(
        requests.c.thread_id == bindparam("thread"),
        requests.c.kind == RequestKind.FOLLOW_UP,
        requests.c.state.in_(NOT_SENT_YET),
    )
    .order_by(*WRITTEN)
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
_ADD = adding(requests)
_BY_ID = select(requests).where(requests.c.id == bindparam("request")).with_for_update()
_START = select(requests).where(requests.c.thread_id == bindparam("thread"), requests.c.kind == RequestKind.START)
_HELD = (
    select(requests)
    .where(
        requests.c.thread_id == bindparam("thread"),
        requests.c.person_id == bindparam("person"),
        requests.c.kind == RequestKind.FOLLOW_UP,
        requests.c.state == RequestState.AWAITING_PERSON,
    )
    .order_by(*WRITTEN)
    .with_for_update()
)
_BY_REPLY = (
    select(requests)
    .where(
        requests.c.thread_id == bindparam("thread"),
        requests.c.kind == RequestKind.FOLLOW_UP,
        requests.c.written_at == bindparam("written"),
    )
    .order_by(requests.c.recorded_at, requests.c.id)
    .with_for_update()
)
SETTLE = (
    update(requests)
    .where(requests.c.id == bindparam("request"))
    .values(
        state=bindparam("state_now"),
        problem=bindparam("why"),
        due_at=bindparam("next_at", type_=Double),
        fetched=None,
        uncertain=or_(requests.c.uncertain, bindparam("may_have_arrived", type_=Boolean)),
        **FREE,
    )
)
_SETTLE_AFRESH = SETTLE.values(
    first_tried_at=None,
    # Attempts to prepare it are counted separately.
    attempts=case((bindparam("state_now") == RequestState.RECEIVED, 0), else_=requests.c.attempts),
)
_REMOVE = delete(requests).where(
    requests.c.id == bindparam("request"), requests.c.state == RequestState.AWAITING_PERSON
)
_SHOW_PROMPT = (
    update(threads)
    .where(threads.c.id == bindparam("thread"), threads.c.prompt != bindparam("words"))
    .values(prompt=bindparam("words"))
)


class Requests:
    """The requests of people."""

    def __init__(self, session: Session, notices: Notices) -> None:
        self._session = session
        self._notices = notices
        self._added: list[Request] = []

    @property
    def added(self) -> Sequence[Request]:
        """The requests that this transaction has recorded."""
        return tuple(self._added)

    async def add(self, request: Request, *, due_in: float = 0.0) -> bool:
        """Records a request, due in this many seconds; False, with nothing recorded, if its `source_key` is known
        already.
        """
        session, waits = self._session, request.state in NOT_SENT_YET
        values = request_values(request) | {"due_at": session.now + due_in if waits else None}
        added = await session.execute(_ADD, values)
        if added.rowcount == 1:
            self._added.append(request)
            if request.state is RequestState.AWAITING_PERSON:
                await home_changed(session, request.person_id)
        return added.rowcount == 1

    async def get(self, request_id: str) -> Request | None:
        """Returns a request, locked after its thread."""
        for row in await self._session.rows(THREAD_OF, request=request_id):
            await self._session.lock_thread(row[requests.c.thread_id])
        rows = await self._session.rows(_BY_ID, request=request_id)
        return request_from(rows[0]) if rows else None

    async def find_start(self, thread_id: str) -> Request | None:
        """Returns the request that started the thread."""
        rows = await self._session.rows(_START, thread=thread_id)
        return request_from(rows[0]) if rows else None

    async def held(self, thread_id: str, person_id: str) -> Sequence[Request]:
        """Returns somebody's follow-ups in a thread that wait for their answer, in the order they were written."""
        rows = await self._session.rows(_HELD, thread=thread_id, person=person_id)
        return [request_from(row) for row in rows]

    async def stops(self, thread_id: str) -> Sequence[Request]:
        """Returns all stops of the thread's job."""
        rows = await self._session.rows(_STOPS, thread=thread_id)
        return read_each(((row[requests.c.id], row) for row in rows), request_from)[0]

    async def find_by_reply(self, thread_id: str, message_ts: str) -> Sequence[Request]:
        """Returns the requests made from one reply and its edits, locked (lock the thread first), oldest first."""
        rows = await self._session.rows(_BY_REPLY, thread=thread_id, written=message_ts)
        return [request_from(row) for row in rows]

    async def waiting_follow_ups(self, thread_id: str) -> Sequence[Request]:
        """Returns the thread's follow-ups that wait to be sent, in the order they were written."""
        rows = await self._session.rows(WAITING_FOLLOW_UPS, thread=thread_id)
        readable, unreadable = read_each(((row[requests.c.id], row) for row in rows), request_from)
        await self._session.end_unreadable(requests, unreadable)
        return readable

    async def several_wait(self, thread_id: str) -> bool:
        """Returns whether more than one follow-up of the thread waits to be sent."""
        return len(await self._session.rows(_SEVERAL_WAIT, thread=thread_id)) > 1

    async def save(self, request: Request) -> None:
        """Saves a request's texts, attachments, times, state and problem. A waiting request keeps its due time, or is
        due now if it had none; a claim for preparing or sending stays. A start's text becomes its
        thread's prompt, unless it was withdrawn.
        """
        names = ("text", "latest_text", "edited_at", "recorded_at", "state", "problem")
        values: dict[str, Any] = {name: getattr(request, name) for name in names}
        values["attachments"] = attachments_json(request.attachments)
        if request.state is RequestState.RECEIVED:
            values["attempts"] = case((requests.c.state == RequestState.RECEIVED, requests.c.attempts), else_=0)
        if request.state in {RequestState.RECEIVED, RequestState.WAITING}:
            values["due_at"] = func.coalesce(requests.c.due_at, self._session.now)
        elif request.state not in {RequestState.PREPARING, RequestState.SENDING}:
            values |= {"due_at": None, "fetched": None, **FREE}
        await self._session.execute(update(requests).where(requests.c.id == request.id).values(values))
        await home_changed(self._session, request.person_id)
        if request.kind is RequestKind.START and request.state is not RequestState.WITHDRAWN:
            await self._session.execute(_SHOW_PROMPT, {"thread": request.thread_id, "words": request.text})

    async def settle(
        self,
        request_id: str,
        state: RequestState,
        *,
        problem: str = "",
        due_in: float = 0.0,
        afresh: bool = False,
        uncertain: bool = False,
    ) -> None:
        """Ends a request, or (WAITING) makes it due again in this many seconds; frees its claim. `afresh`: it counts as
        not tried before. `uncertain`: it may have arrived, which is never unset.
        """
        next_at = self._session.now + due_in if state in NOT_SENT_YET else None
        values = settled(request_id, state, problem=problem, next_at=next_at, uncertain=uncertain)
        await self._session.execute(_SETTLE_AFRESH if afresh else SETTLE, values)
        if afresh:
            await due_again(self._session, request_id)

    async def unsent(self, thread_id: str) -> Sequence[Request]:
        """Returns the requests about a thread's job that were certainly not sent: follow-ups, held replies, and words
        for Pagehand; in the order they were written. Lock the thread first.
        """
        return await self._readable(await self._session.rows(_UNSENT, thread=thread_id))

    async def move(self, unsent: Sequence[Request], thread_id: str) -> None:
        """Moves unsent requests, with the marks on their messages, to another thread, where they are prepared again.
        Lock both threads first.
        """
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
            await self._notices.move(ReactionChanged.key(request), request.thread_id, thread_id)

    async def remove(self, request: Request) -> None:
        """Removes a request that waits for its person's answer, so that its message can become another one."""
        await self._session.execute(_REMOVE, {"request": request.id})
        await home_changed(self._session, request.person_id)

    async def _readable(self, rows: Sequence[RowMapping]) -> Sequence[Request]:
        """Returns the requests of these rows; ends unreadable ones and tells their people."""
        readable, unreadable = read_each(((row[requests.c.id], row) for row in rows), request_from)
        await self._session.end_unreadable(requests, unreadable)
        ended = {row_id for row_id, _ in unreadable}
        told = [(row[requests.c.thread_id], unreadable_notice(row)) for row in rows if row[requests.c.id] in ended]
        await self._notices.insert(told)
        return readable


def unreadable_notice(row: RowMapping) -> NewNotice:
    """Returns the notice that a request was not sent because it, or its thread, cannot be read."""
    request = RequestSummary(row[requests.c.id], str(row[requests.c.person_id]), kind=None)
    return NewNotice(
        RequestRejected.unreadable_key(request.request_id), RequestRejected(request, RejectionReason.UNREADABLE)
    )


def log_recorded(recorded: Sequence[Request]) -> None:
    """Writes a log line for each request."""
    for request in recorded:
        about = {"request": request.log_id, "thread": request.thread_id}
        who = {"person": request.person_id, "way_in": request.way_in.value}
        logger.info("request recorded: %s", request.kind, extra={"fields": about | who})


def settled(
    request_id: str, state: RequestState, *, problem: str, next_at: float | None, uncertain: bool = False
) -> dict[str, Any]:
    """Returns the parameters of SETTLE."""
    return {
        "request": request_id,
        "state_now": state,
        "why": problem,
        "next_at": next_at,
        "may_have_arrived": uncertain,
    }
