"""What people asked for: recording, reading and changing it."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, bindparam, case, delete, func, literal, not_, select, update

from bot.domain.requests.request import NOT_SENT_YET, RejectionReason, Request, RequestKind, RequestState
from bot.errors import UnreadableRow
from bot.jobapi.models import Mode
from bot.notices.notice import NewNotice, ReactionChanged
from bot.notices.requests import RequestRejected, RequestSummary
from bot.queue.claims import FREE
from bot.queue.transaction import adding
from bot.store.claims import read_each
from bot.store.notices import Notices
from bot.store.people import home_changed
from bot.store.request_parts import due_again
from bot.store.schema.rows import attachments_json, request_from, request_values
from bot.store.schema.tables import requests, threads
from bot.store.session import Session
from bot.store.turns import WRITTEN

logger = logging.getLogger(__name__)

_ADD = adding(requests)
_MOVED_KINDS = [kind for kind in RequestKind if kind not in {RequestKind.START, RequestKind.CHOOSE_PROJECT}]


def of_thread(thread_id: object, *conditions: ColumnElement[bool]) -> Select[Any]:
    """Selects the requests of a thread, in the order they were written."""
    return select(requests).where(requests.c.thread_id == thread_id, *conditions).order_by(*WRITTEN)


def waiting_follow_ups(thread_id: str) -> Select[Any]:
    """Selects the follow-ups of a thread that wait to be sent, in the order they were written."""
    return of_thread(thread_id, requests.c.kind == RequestKind.FOLLOW_UP, requests.c.state.in_(NOT_SENT_YET))


_START_OF = of_thread(bindparam("thread"), requests.c.kind == RequestKind.START)
_THREAD_OF = select(requests.c.thread_id).where(requests.c.id == bindparam("request"))
_BY_ID = select(requests).where(requests.c.id == bindparam("request")).with_for_update()
_UPDATE = update(requests).where(requests.c.id == bindparam("request"))


def with_threads(*conditions: ColumnElement[bool]) -> Select[Any]:
    """Selects requests with their threads."""
    return select(requests, threads).join(threads, threads.c.id == requests.c.thread_id).where(*conditions)


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
        thread_id = await self._thread_of(request_id)
        if thread_id is None:
            return None
        await self._session.lock_thread(thread_id)
        rows = await self._session.rows(_BY_ID, request=request_id)
        return request_from(rows[0]) if rows else None

    async def find_start(self, thread_id: str) -> Request | None:
        """Returns the request that started the thread."""
        rows = await self._session.rows(_START_OF, thread=thread_id)
        return request_from(rows[0]) if rows else None

    async def held(self, thread_id: str, person_id: str) -> Sequence[Request]:
        """Returns somebody's follow-ups in a thread that wait for their answer, in the order they were written."""
        found = of_thread(
            thread_id,
            requests.c.person_id == person_id,
            requests.c.kind == RequestKind.FOLLOW_UP,
            requests.c.state == RequestState.AWAITING_PERSON,
        )
        return [request_from(row) for row in await self._session.rows(found.with_for_update())]

    async def stops(self, thread_id: str) -> Sequence[Request]:
        """Returns all stops of the thread's job."""
        return read_requests(await self._session.rows(of_thread(thread_id, requests.c.kind == RequestKind.STOP)))[0]

    async def find_by_reply(self, thread_id: str, message_ts: str) -> Sequence[Request]:
        """Returns the requests made from one reply and its edits, locked (lock the thread first), oldest first."""
        of_reply = (requests.c.kind == RequestKind.FOLLOW_UP, requests.c.written_at == message_ts)
        rows = await self._session.rows(of_thread(thread_id, *of_reply).with_for_update())
        return [request_from(row) for row in rows]

    async def waiting_follow_ups(self, thread_id: str) -> Sequence[Request]:
        """Returns the thread's follow-ups that wait to be sent, in the order they were written."""
        return await self._readable(await self._session.rows(waiting_follow_ups(thread_id)))

    async def turns_to(self, thread_id: str, mode: Mode) -> bool:
        """Returns whether a follow-up that turns the thread's job to a mode is on its way, or may have arrived."""
        on_its_way = (*NOT_SENT_YET, RequestState.SENDING, RequestState.UNCERTAIN)
        turning = of_thread(thread_id, requests.c.mode == mode, requests.c.state.in_(on_its_way))
        return bool(await self._session.rows(turning))

    async def several_wait(self, thread_id: str) -> bool:
        """Returns whether more than one follow-up of the thread waits to be sent."""
        two = waiting_follow_ups(thread_id).where(requests.c.due_at.is_not(None)).limit(2)
        return len(await self._session.rows(two.with_only_columns(requests.c.id))) > 1

    async def save(self, request: Request) -> None:
        """Saves a request's texts, attachments, times, state and problem. A waiting request keeps its due time, or is
        due now if it had none; a claim for preparing or sending stays. A start's text becomes its
        thread's prompt, unless it was withdrawn.
        """
        names = ("text", "latest_text", "edited_at", "recorded_at", "state", "problem")
        values: dict[str, Any] = {name: getattr(request, name) for name in names}
        values["attachments"] = attachments_json(request.attachments)
        computed: dict[str, ColumnElement[Any]] = {}
        if request.state is RequestState.RECEIVED:
            computed["attempts"] = case((requests.c.state == RequestState.RECEIVED, requests.c.attempts), else_=0)
        if request.state in {RequestState.RECEIVED, RequestState.WAITING}:
            computed["due_at"] = func.coalesce(requests.c.due_at, self._session.now)
        elif request.state not in {RequestState.PREPARING, RequestState.SENDING}:
            values |= {"due_at": None, "fetched": None, **FREE}
        await self._update(request.id, values, **computed)
        await home_changed(self._session, request.person_id)
        if request.kind is RequestKind.START and request.state is not RequestState.WITHDRAWN:
            shows_another = (threads.c.id == request.thread_id, threads.c.prompt != request.text)
            await self._session.execute(update(threads).where(*shows_another).values(prompt=request.text))

    async def settle(
        self,
        request_id: str,
        state: RequestState,
        *,
        problem: str = "",
        due_in: float = 0.0,
        tried: bool = True,
        afresh: bool = False,
        uncertain: bool = False,
    ) -> None:
        """Ends a request, or (RECEIVED, WAITING) makes it due again in this many seconds; frees its claim. Unless it
        was `tried`, the claim counts as no attempt; `afresh`: as not tried before. `uncertain`: it may have arrived,
        which is never unset.
        """
        values: dict[str, Any] = {
            "state": state,
            "problem": problem,
            "due_at": self._session.now + due_in if state in NOT_SENT_YET else None,
            "fetched": None,
            **FREE,
        }
        computed = {} if tried else {"attempts": requests.c.attempts - 1}
        if uncertain:
            values["uncertain"] = True
        if afresh:
            values["first_tried_at"] = None
        if afresh and state is RequestState.RECEIVED:
            computed = {"attempts": literal(0)}  # attempts to prepare it are counted separately
        await self._update(request_id, values, **computed)
        if afresh:
            await due_again(self._session, request_id)

    async def unsent(self, thread_id: str) -> Sequence[Request]:
        """Returns the requests about a thread's job that were certainly not sent: follow-ups, held replies, and words
        for Pagehand; in the order they were written. Lock the thread first.
        """
        unsent = of_thread(
            thread_id,
            requests.c.kind.in_(_MOVED_KINDS),
            requests.c.state.in_((*NOT_SENT_YET, RequestState.AWAITING_PERSON)),
            not_(requests.c.uncertain),
        )
        return await self._readable(await self._session.rows(unsent.with_for_update()))

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
            await self._update(request.id, values)
            await self._notices.move(ReactionChanged.key(request), request.thread_id, thread_id)

    async def remove(self, request: Request) -> None:
        """Removes a request that waits for its person's answer, so that its message can become another one."""
        held = (requests.c.id == request.id, requests.c.state == RequestState.AWAITING_PERSON)
        await self._session.execute(delete(requests).where(*held))
        await home_changed(self._session, request.person_id)

    async def _thread_of(self, request_id: str) -> str | None:
        rows = await self._session.rows(_THREAD_OF, request=request_id)
        return rows[0]["thread_id"] if rows else None

    async def _update(self, request_id: str, values: Mapping[str, Any], **computed: ColumnElement[Any]) -> None:
        statement = _UPDATE.values(computed) if computed else _UPDATE
        await self._session.execute(statement, {"request": request_id, **values})

    async def _readable(self, rows: Sequence[RowMapping]) -> Sequence[Request]:
        """Returns the requests of these rows; ends unreadable ones and tells their people."""
        readable, unreadable = read_requests(rows)
        await self._session.end_unreadable(requests, unreadable)
        ended = {row_id for row_id, _ in unreadable}
        told = [(row[requests.c.thread_id], unreadable_notice(row)) for row in rows if row[requests.c.id] in ended]
        await self._notices.insert(told)
        return readable


def read_requests(rows: Iterable[RowMapping]) -> tuple[list[Request], list[tuple[str, UnreadableRow]]]:
    """Returns the readable requests, and the ids of unreadable ones with the reasons."""
    return read_each(((row[requests.c.id], row) for row in rows), request_from)


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
