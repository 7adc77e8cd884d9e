"""The queue of requests: those to be prepared, and those to be sent, alone or merged."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import RowMapping, Text, Update, and_, bindparam, func, literal, not_, or_, select, tuple_, update

from bot.domain.requests.request import NOT_SENT_YET, Request, RequestKind, RequestState
from bot.domain.threads.thread import Thread
from bot.errors import UnreadableRow
from bot.jobapi.models import Mode, Requester
from bot.queue.claims import FREE, NOW
from bot.store.claims import PATIENCE, claim_candidates, claiming, leave_newer_kinds, read_each
from bot.store.request_parts import FILES_ARE_SETTLED
from bot.store.requests import Requests, of_thread, read_requests, unreadable_notice, waiting_follow_ups, with_threads
from bot.store.schema.rows import json_if_known, json_of, request_from, thread_from, thread_to_speak_in
from bot.store.schema.tables import HELD, requests, threads, to_be_prepared, to_be_sent
from bot.store.turns import (
    RECEIVED,
    RECEIVED_OF,
    WAITING,
    WRITTEN,
    Share,
    find_shares,
    first_open_of,
    in_turn,
    start_is_pending,
    under_way,
)


@dataclass(frozen=True)
class ClaimedRequest:
    """A claimed request. `uncertain`: an earlier holder died or was paused while sending, so it may have arrived.
    `merged`: the requests that are sent with it as one message, in the order they were written. `taken_over`: an
    earlier holder did not finish. `waited`: its message may have been changed since, and Pagehand not been told.
    """

    request: Request
    thread: Thread
    uncertain: bool
    merged: tuple[Request, ...] = ()
    taken_over: bool = False
    waited: bool = False


@dataclass(frozen=True)
class AheadOfCards:
    """The projects whose jobs are created before their card is posted, if they follow no other job: `anywhere`, or only
    `in_threads` that exist already.
    """

    anywhere: Sequence[str] = ()
    in_threads: Sequence[str] = ()


NOT_AHEAD = AheadOfCards()
KNOWN_KINDS = frozenset(RequestKind)
_ANY_NUMBER = 2_147_483_647
_MOST_THREADS = 100
"""The threads of each person that are searched for requests to prepare; some requests may be in progress or not due."""
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
_MERGED = of_thread(bindparam("thread"), requests.c.merged_into == bindparam("request")).with_for_update()
_ON_THEIR_WAY = of_thread(
    bindparam("thread"),
    requests.c.due_at.is_not(None),
    requests.c.kind.in_((RequestKind.START, RequestKind.FOLLOW_UP)),
    requests.c.state.in_((RequestState.WAITING, RequestState.SENDING)),
)
_CANDIDATES = with_threads(requests.c.id.in_(bindparam("ids", expanding=True))).with_for_update(
    of=[requests, threads], key_share=True, skip_locked=True
)
_CLAIMED = (
    select(requests)
    .where(
        requests.c.id == bindparam("request"),
        requests.c.thread_id == bindparam("thread"),
        requests.c.claimed_by == bindparam("owner"),
        requests.c.state == bindparam("state"),
    )
    .with_for_update()
)


class RequestQueue(Requests):
    """The same, with preparing and sending."""

    async def claim_received(
        self, owner: str, *, lease: float, limit: int, turn: float = 0.0
    ) -> Sequence[ClaimedRequest]:
        """Claims requests to prepare, and marks them PREPARING: one per person, then another one each, from another
        thread if there is one. `turn`, from 0 to 1, decides who comes first.
        """
        session = self._session
        found = await find_shares(session, RECEIVED, turn=turn, limit=2 * limit, most=_MOST_THREADS)
        ids = list(dict.fromkeys(share.first for share in found))
        if found and len(ids) < limit:
            ids = in_turn(
                [await self._received_of(share, limit) for share in {each.first: each for each in found}.values()]
            )
        return await self._claim(ids, _CLAIM_RECEIVED, owner, lease=lease, limit=limit)

    async def _received_of(self, share: Share, limit: int) -> list[str]:
        of = {"person": share.person_id, "thread": share.thread_id}
        return [row["id"] for row in await self._session.rows(RECEIVED_OF, **of, limit=limit, now=self._session.now)]

    async def prepared(self, request: Request, *, due_in: float = 0.0) -> None:
        """Records a prepared request that the caller holds: its state, problem and context. One that waits to be sent
        is due in this many seconds. Frees the claim.
        """
        values: dict[str, Any] = {
            "state": request.state,
            "problem": request.problem,
            "context": json_if_known(request.context),
            "due_at": self._session.now + due_in if request.state in NOT_SENT_YET else None,
            "attempts": 0,
            "first_tried_at": None,
            "fetched": None,
            **FREE,
        }
        await self._update(request.id, values)

    async def has_pending_start(self, thread_id: str) -> bool:
        """Returns whether a job that will follow this thread's has not passed its checks yet."""
        pending = select(start_is_pending(literal(thread_id, Text)).label("pending"))
        (row,) = await self._session.rows(pending)
        return bool(row["pending"])

    async def waiting_for(self, person_id: str, *, limit: int) -> Sequence[tuple[Request, Thread]]:
        """Returns the oldest requests that wait for their person, with the threads of their jobs; not locked."""
        waiting = with_threads(HELD, requests.c.person_id == person_id).order_by(requests.c.recorded_at)
        rows = await self._session.rows(waiting.limit(limit))
        keyed = ((row[requests.c.id], row) for row in rows)
        return read_each(keyed, lambda row: (request_from(row), thread_to_speak_in(row)))[0]

    async def merge(self, first: Request, others: Sequence[Request], owner: str, *, lease: float) -> None:
        """Merges waiting follow-ups of the thread, which is locked, into one that `owner` has claimed: each gets the
        same claim, and names that one.
        """
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

    async def merged_into(self, request: Request) -> Sequence[Request]:
        """Returns the requests merged into this one, in the order they were written, locked."""
        if request.kind is not RequestKind.FOLLOW_UP:
            return []
        rows = await self._session.rows(_MERGED, thread=request.thread_id, request=request.id)
        return await self._readable(rows)

    async def unmerge(self, request: Request) -> None:
        """Undoes a merge: the others are sent separately, or with others."""
        among = (requests.c.thread_id == request.thread_id, requests.c.merged_into == request.id)
        await self._session.execute(update(requests).where(*among).values(merged_into=""))

    async def follow_ups_after(self, first: Request, *, limit: int) -> Sequence[Request]:
        """Returns the follow-ups of the thread, which is locked, to be sent after this one, in the order they were
        written: at most `limit`, up to one that cannot be read or waits for a file.
        """
        found: list[Request] = []
        after = tuple_(first.written_at, first.recorded_at, first.id, types=[column.type for column in WRITTEN])
        open_ones = waiting_follow_ups(first.thread_id).where(requests.c.due_at.is_not(None), tuple_(*WRITTEN) > after)
        with_files = open_ones.add_columns(FILES_ARE_SETTLED.label("settled"))
        for row in await self._session.rows(with_files.limit(limit)):
            if not row["settled"]:
                break
            try:
                found.append(request_from(row))
            except UnreadableRow:
                break  # reported when its turn to be sent comes
        return found

    async def on_their_way(self, thread_id: str) -> Sequence[Request]:
        """Returns the thread's start and follow-ups that are prepared and waiting, or being sent, in the order they
        were written.
        """
        return read_requests(await self._session.rows(_ON_THEIR_WAY, thread=thread_id))[0]

    async def claim(
        self, owner: str, *, lease: float, limit: int, turn: float = 0.0, ahead: AheadOfCards = NOT_AHEAD
    ) -> Sequence[ClaimedRequest]:
        """Claims due requests, in turns like `claim_received`: the first open one of each thread (a start first, then a
        stop, then follow-ups by `written_at`), a start once the card is posted, or before if it is one of those that go
        `ahead` and no post in its channel is failing; a follow-up only once the job has its id and its card, and no
        other job is about to follow. Marks them SENDING, counts the attempt, sets first_tried_at. A SENDING one whose
        lease ran out is claimed as uncertain, and its row says so.
        """
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
        locked = await session.rows(_CANDIDATES, ids=list(place))
        in_order = sorted(locked, key=lambda row: place[row[requests.c.id]])[:limit]
        found = await leave_newer_kinds(session, requests, in_order, partial(_unknown_kind, now=session.now))
        claimed, unreadable = await claim_candidates(session, claiming_, found, _claimed, owner=owner, lease=lease)
        await self._notices.insert((row[threads.c.id], unreadable_notice(row)) for row in unreadable)
        return claimed

    async def claimed(self, request: Request, owner: str, state: RequestState) -> Request | None:
        """Returns a request that `owner` is preparing or sending (`state`) as it is now, locked; None if it is not any
        more: it is until somebody else claims the request, even after its lease ran out, or itself for the other, after
        a stop for example. Lock its thread first.
        """
        claim = {"owner": owner, "state": state}
        rows = await self._session.rows(_CLAIMED, request=request.id, thread=request.thread_id, **claim)
        return request_from(rows[0]) if rows else None

    async def set_text(self, request_id: str, text: str) -> None:
        """Sets a request's text."""
        await self._update(request_id, {"text": text})

    async def set_requester(self, request_id: str, requester: Requester) -> None:
        """Sets the requester that the job API gets."""
        await self._update(request_id, {"requester": json_of(requester)})

    async def set_mode(self, request_id: str, mode: Mode) -> None:
        """Sets the mode in which a request is sent."""
        await self._update(request_id, {"mode": mode})


def _unknown_kind(row: RowMapping, *, now: float) -> str | None:
    """The kind of a request that only a newer version knows, and that was recorded lately."""
    kind, recently = str(row[requests.c.kind]), now - row[requests.c.recorded_at] < PATIENCE
    return kind if recently and kind not in KNOWN_KINDS else None


def _claimed(before: RowMapping, now: RowMapping) -> ClaimedRequest:
    uncertain = before[requests.c.state] == RequestState.SENDING
    taken_over = before[requests.c.claimed_by] is not None
    return ClaimedRequest(request_from(now), thread_from(before), uncertain, taken_over=taken_over)
