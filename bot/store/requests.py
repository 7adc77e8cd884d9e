"""What people asked for: recording, reading and changing it, and the queue of requests to send."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import (
    Boolean,
    Double,
    RowMapping,
    Update,
    and_,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    not_,
    or_,
    select,
    update,
)

from bot.domain.requests.request import NOT_SENT_YET, Request, Requester, RequestKind, RequestState
from bot.domain.threads.thread import Thread
from bot.ports.store import NOT_AHEAD, AheadOfCards, ClaimedRequest
from bot.store.claims import FREE, NOW, PATIENCE, claim_candidates, claim_of, claiming, leave_newer_kinds, read_each
from bot.store.merged_requests import THREAD_OF, WRITTEN, MergedRequests, start_is_pending, unreadable_notice
from bot.store.notices import SqlNotices
from bot.store.people import home_changed
from bot.store.request_parts import FILES_ARE_SETTLED, due_again
from bot.store.schema.rows import (
    attachments_json,
    context_json,
    request_from,
    request_values,
    requester_json,
    thread_from,
    thread_to_speak_in,
)
from bot.store.schema.tables import requests, threads
from bot.store.session import Session, for_each_dialect
from bot.store.turns import (
    RECEIVED,
    RECEIVED_OF,
    WAITING,
    Share,
    find_shares,
    first_open_of,
    in_turn,
    to_be_prepared,
    to_be_sent,
    under_way,
)

logger = logging.getLogger(__name__)

KNOWN_KINDS = frozenset(RequestKind)
_ANY_NUMBER = 2_147_483_647
_MOST_THREADS = 100
"""The threads of each person that are searched for requests to prepare; some requests may be in progress or not due."""
_ADD = for_each_dialect(lambda into: into(requests).on_conflict_do_nothing())
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
_WAITING_FOR = (
    select(requests, threads)
    .join(threads, threads.c.id == requests.c.thread_id)
    .where(
        requests.c.state == literal_column(f"'{RequestState.AWAITING_PERSON}'"),
        requests.c.person_id == bindparam("person"),
    )
    .order_by(requests.c.recorded_at)
    .limit(bindparam("limit"))
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
_CLAIMED_BY = (
    select(requests.c.id)
    .where(
        requests.c.id == bindparam("request"),
        requests.c.claimed_by == bindparam("owner"),
        requests.c.state.in_((RequestState.PREPARING, RequestState.SENDING)),
    )
    .with_for_update()
)
_SETTLE = (
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
_SETTLE_AFRESH = _SETTLE.values(
    first_tried_at=None,
    # Attempts to prepare it are counted separately.
    attempts=case((bindparam("state_now") == RequestState.RECEIVED, 0), else_=requests.c.attempts),
)
_NOT_TRIED = _SETTLE.values(attempts=requests.c.attempts - 1)

_REMOVE = delete(requests).where(
    requests.c.id == bindparam("request"), requests.c.state == RequestState.AWAITING_PERSON
)
_SHOW_PROMPT = (
    update(threads)
    .where(threads.c.id == bindparam("thread"), threads.c.prompt != bindparam("words"))
    .values(prompt=bindparam("words"))
)
_LOCKED = (
    select(requests, threads)
    .join(threads, threads.c.id == requests.c.thread_id)
    .where(requests.c.id.in_(bindparam("ids", expanding=True)))
    .with_for_update(of=[requests, threads], key_share=True, skip_locked=True)
)
_CLAIM_RECEIVED = claiming(requests, to_be_prepared(requests), state=RequestState.PREPARING)
_FIRST = and_(
    requests.c.id == first_open_of(requests.c.thread_id),
    ~under_way(requests.c.thread_id),
    to_be_sent(requests),
    FILES_ARE_SETTLED,
    requests.c.merged_into == "",
    or_(requests.c.kind != RequestKind.FOLLOW_UP, not_(start_is_pending(requests.c.thread_id))),
)
_CLAIM = claiming(
    requests,
    _FIRST,
    state=RequestState.SENDING,
    first_tried_at=func.coalesce(requests.c.first_tried_at, NOW),
    uncertain=or_(requests.c.uncertain, requests.c.state == RequestState.SENDING),
)


class SqlRequests(MergedRequests):
    """ports.RequestQueue."""

    def __init__(self, session: Session, notices: SqlNotices) -> None:
        super().__init__(session, notices)
        self._added: list[Request] = []

    @property
    def added(self) -> Sequence[Request]:
        """The requests that this transaction has recorded."""
        return tuple(self._added)

    async def add(self, request: Request, *, due_in: float = 0.0) -> bool:
        session, waits = self._session, request.state in NOT_SENT_YET
        values = request_values(request) | {"due_at": session.now + due_in if waits else None}
        added = await session.execute(_ADD[session.dialect], values)
        if added.rowcount == 1:
            self._added.append(request)
            if request.state is RequestState.AWAITING_PERSON:
                await home_changed(session, request.person_id)
        return added.rowcount == 1

    async def get(self, request_id: str) -> Request | None:
        for row in await self._session.rows(THREAD_OF, request=request_id):
            await self._session.lock_thread(row[requests.c.thread_id])
        rows = await self._session.rows(_BY_ID, request=request_id)
        return request_from(rows[0]) if rows else None

    async def find_start(self, thread_id: str) -> Request | None:
        rows = await self._session.rows(_START, thread=thread_id)
        return request_from(rows[0]) if rows else None

    async def find_by_reply(self, thread_id: str, message_ts: str) -> Sequence[Request]:
        rows = await self._session.rows(_BY_REPLY, thread=thread_id, written=message_ts)
        return [request_from(row) for row in rows]

    async def save(self, request: Request, *, due_in: float = 0.0) -> None:
        names = ("text", "latest_text", "edited_at", "recorded_at", "state", "problem")
        values: dict[str, Any] = {name: getattr(request, name) for name in names}
        values["attachments"] = attachments_json(request.attachments)
        if request.state is RequestState.RECEIVED:
            values["attempts"] = case((requests.c.state == RequestState.RECEIVED, requests.c.attempts), else_=0)
        if request.state in {RequestState.RECEIVED, RequestState.WAITING}:
            values["due_at"] = func.coalesce(requests.c.due_at, self._session.now + due_in)
        elif request.state not in {RequestState.PREPARING, RequestState.SENDING}:
            values |= {"due_at": None, "fetched": None, **FREE}
        await self._session.execute(update(requests).where(requests.c.id == request.id).values(values))
        await home_changed(self._session, request.person_id)
        if request.kind is RequestKind.START and request.state is not RequestState.WITHDRAWN:
            await self._session.execute(_SHOW_PROMPT, {"thread": request.thread_id, "words": request.text})

    async def set_text(self, request_id: str, text: str) -> None:
        await self._session.execute(update(requests).where(requests.c.id == request_id).values(text=text))

    async def set_requester(self, request_id: str, requester: Requester) -> None:
        values = {"requester": requester_json(requester)}
        await self._session.execute(update(requests).where(requests.c.id == request_id).values(values))

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
        next_at = self._session.now + due_in if state in NOT_SENT_YET else None
        values = _settled(request_id, state, problem=problem, next_at=next_at, uncertain=uncertain)
        await self._session.execute(_SETTLE_AFRESH if afresh else _SETTLE, values)
        if afresh:
            await due_again(self._session, request_id)

    async def not_tried(self, request_id: str, *, due_in: float, problem: str) -> None:
        next_at = self._session.now + due_in
        await self._session.execute(
            _NOT_TRIED, _settled(request_id, RequestState.RECEIVED, problem=problem, next_at=next_at)
        )

    async def remove(self, request: Request) -> None:
        await self._session.execute(_REMOVE, {"request": request.id})
        await home_changed(self._session, request.person_id)

    async def is_claimed_by(self, request_id: str, owner: str) -> bool:
        return bool(await self._session.rows(_CLAIMED_BY, request=request_id, owner=owner))

    async def claim_received(
        self, owner: str, *, lease: float, limit: int, turn: float = 0.0
    ) -> Sequence[ClaimedRequest]:
        session = self._session
        found = await find_shares(session, RECEIVED, turn=turn, limit=2 * limit, most=_MOST_THREADS)
        ids = list(dict.fromkeys(share.first for share in found))
        if found and len(ids) < limit:
            ids = in_turn(
                [await self._received_of(share, limit) for share in {each.first: each for each in found}.values()]
            )
        return await self._claim(ids, _CLAIM_RECEIVED, owner, lease=lease, limit=limit)

    async def _received_of(self, share: Share, limit: int) -> list[str]:
        values = {"person": share.person_id, "thread": share.thread_id, "limit": limit, "now": self._session.now}
        return [row["id"] for row in await self._session.rows(RECEIVED_OF, **values)]

    async def prepared(self, request: Request, *, due_in: float = 0.0) -> None:
        values: dict[str, Any] = {
            "state": request.state,
            "problem": request.problem,
            "context": context_json(request.context),
            "due_at": self._session.now + due_in if request.state in NOT_SENT_YET else None,
            "attempts": 0,
            "first_tried_at": None,
            "fetched": None,
            **FREE,
        }
        await self._session.execute(update(requests).where(requests.c.id == request.id).values(values))

    async def held(self, thread_id: str, person_id: str) -> Sequence[Request]:
        rows = await self._session.rows(_HELD, thread=thread_id, person=person_id)
        return [request_from(row) for row in rows]

    async def waiting_for(self, person_id: str, *, limit: int) -> Sequence[tuple[Request, Thread]]:
        rows = await self._session.rows(_WAITING_FOR, person=person_id, limit=limit)
        readable, _ = read_each(((row[requests.c.id], row) for row in rows), _with_thread)
        return readable

    async def claim(
        self, owner: str, *, lease: float, limit: int, turn: float = 0.0, ahead: AheadOfCards = NOT_AHEAD
    ) -> Sequence[ClaimedRequest]:
        projects = {"ahead": ahead.anywhere, "ahead_in_threads": ahead.in_threads}
        found = await find_shares(self._session, WAITING, turn=turn, limit=2 * limit, most=_ANY_NUMBER, **projects)
        ids = list(dict.fromkeys(share.first for share in found))
        return await self._claim(ids, _CLAIM, owner, lease=lease, limit=limit)

    async def _claim(
        self, ids: Sequence[str], claiming_: Update, owner: str, *, lease: float, limit: int
    ) -> Sequence[ClaimedRequest]:
        """Claims the first of these that nobody else is about to claim; reads twice as many as needed."""
        if not ids:
            return []
        session, place = self._session, {request_id: number for number, request_id in enumerate(ids[: 2 * limit])}
        locked = await session.rows(_LOCKED, ids=list(place))
        in_order = sorted(locked, key=lambda row: place[row[requests.c.id]])[:limit]
        found = await leave_newer_kinds(session, requests, in_order, partial(_unknown_kind, now=session.now))
        claim = claim_of(session, owner, lease)
        claimed, unreadable = await claim_candidates(session, claiming_, found, claim, _claimed)
        await self._notices.insert((row[threads.c.id], unreadable_notice(row)) for row in unreadable)
        return claimed


def _unknown_kind(row: RowMapping, *, now: float) -> str | None:
    """The kind of a request that only a newer version knows, and that was recorded lately."""
    kind, recently = str(row[requests.c.kind]), now - row[requests.c.recorded_at] < PATIENCE
    return kind if recently and kind not in KNOWN_KINDS else None


def _with_thread(row: RowMapping) -> tuple[Request, Thread]:
    return request_from(row), thread_to_speak_in(row)


def log_recorded(recorded: Sequence[Request]) -> None:
    """Writes a log line for each request."""
    for request in recorded:
        about = {"request": request.log_id, "thread": request.thread_id}
        who = {"person": request.person_id, "way_in": request.way_in.value}
        logger.info("request recorded: %s", request.kind, extra={"fields": about | who})


def _settled(
    request_id: str, state: RequestState, *, problem: str, next_at: float | None, uncertain: bool = False
) -> dict[str, Any]:
    """Returns the parameters of _SETTLE."""
    return {
        "request": request_id,
        "state_now": state,
        "why": problem,
        "next_at": next_at,
        "may_have_arrived": uncertain,
    }


def _claimed(before: RowMapping, now: RowMapping) -> ClaimedRequest:
    uncertain = before[requests.c.state] == RequestState.SENDING
    taken_over = before[requests.c.claimed_by] is not None
    return ClaimedRequest(request_from(now), thread_from(before), uncertain, taken_over=taken_over)
