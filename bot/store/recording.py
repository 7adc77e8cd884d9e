"""Recording, reading and changing: what listeners and the service do."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, case, delete, exists, insert, select, true, update

from bot.domain.models import Known, NoticeKind, Person, Reply, Request, RequestKind, RequestState, Saying, Thread
from bot.errors import UnreadableRow
from bot.store.rows import LASTING, known_values, notice_values, request_from, request_values, thread_values
from bot.store.session import Session
from bot.store.tables import NoticeState, early_replies, notices, requests, threads, watches

_THREAD_AT = (
    select(threads)
    .where(threads.c.channel_id == bindparam("channel"), threads.c.ts == bindparam("card_ts"))
    .with_for_update(key_share=True)
)
_REQUEST = select(requests).where(requests.c.id == bindparam("request")).with_for_update()
_THREAD_OF = select(requests.c.thread_id).where(requests.c.id == bindparam("request"))
_START = select(requests).where(requests.c.thread_id == bindparam("thread"), requests.c.kind == RequestKind.START)
_FOLLOW_UPS = (
    select(requests)
    .where(
        requests.c.thread_id == bindparam("thread"),
        requests.c.kind == RequestKind.FOLLOW_UP,
        requests.c.state == RequestState.WAITING,
    )
    .order_by(requests.c.written_at, requests.c.recorded_at, requests.c.id)
)
_HELD = (
    select(requests.c.id)
    .where(
        requests.c.id == bindparam("request"),
        requests.c.claimed_by == bindparam("owner"),
        requests.c.state == RequestState.SENDING,
    )
    .with_for_update()
)
_CARDS_ON_THEIR_WAY = (
    select(threads.c.created_at)
    .where(
        threads.c.channel_id == bindparam("channel"),
        threads.c.ts.is_(None),
        exists().where(
            notices.c.thread_id == threads.c.id, notices.c.kind == NoticeKind.CARD, notices.c.due_at.is_not(None)
        ),
    )
    .order_by(threads.c.id)
)
_EARLY_REPLIES = (
    select(early_replies)
    .where(early_replies.c.channel_id == bindparam("channel"), early_replies.c.thread_ts == bindparam("card_ts"))
    .order_by(early_replies.c.message_ts)
)
_SKEW = 60.0
"""Seconds that Slack's clock, which makes every `ts`, may differ from ours."""
_NO_POLL = {"due_at": None, "claimed_by": None, "claimed_until": None}
_CARD_NOT_POSTED = and_(
    notices.c.kind == NoticeKind.CARD,
    exists().where(threads.c.id == notices.c.thread_id, threads.c.ts.is_(None)).correlate(notices),
)


class Recording(Session):
    """The methods of Transaction under "recording" and "reading and changing"; `thread` is Session's."""

    async def add_thread(self, thread: Thread) -> bool:
        """Records a new thread with its watch (not due: there is no job yet); False where its id is known already."""
        added = await self._connection.execute(
            self._insert(threads)
            .values(**thread_values(thread), touched_at=self._now)
            .on_conflict_do_nothing(index_elements=[threads.c.id])
        )
        if added.rowcount == 1:
            await self._connection.execute(insert(watches).values(thread_id=thread.id))
        return added.rowcount == 1

    async def add_request(self, request: Request, *, due_in: float = 0.0) -> bool:
        """Records a request; False, and nothing recorded, where its `source_key` is known already."""
        values = request_values(request)
        if request.state is RequestState.WAITING:
            values["due_at"] = self._now + due_in
        added = await self._connection.execute(self._insert(requests).values(values).on_conflict_do_nothing())
        return added.rowcount == 1

    async def say(self, thread_id: str, saying: Saying) -> None:
        """Records a notice, or opens it again (see the port)."""
        await self._lock(thread_id)
        await self._say_all([(thread_id, saying)])

    async def _say_all(self, sayings: Iterable[tuple[str, Saying]]) -> None:
        """Records notices of threads that are locked."""
        once: list[dict[str, Any]] = []
        lasting: list[dict[str, Any]] = []
        for thread_id, saying in sayings:
            kept = lasting if saying.kind in LASTING else once
            kept.append(notice_values(thread_id, saying, self._now))
        if once:
            known_key = [notices.c.key]
            await self._connection.execute(self._insert(notices).on_conflict_do_nothing(index_elements=known_key), once)
        if lasting:
            await self._connection.execute(self._insert_or_open_again(), lasting)

    def _insert_or_open_again(self) -> Any:
        """A notice under way stays claimed: its holder's result closes only the revision that was delivered."""
        insert = self._insert(notices)
        new = insert.excluded
        under_way = notices.c.state == NoticeState.SENDING
        return insert.on_conflict_do_update(
            index_elements=[notices.c.key],
            set_={
                "what": new.what,
                "facts": new.facts,
                "revision": notices.c.revision + 1,
                "state": case((under_way, notices.c.state), else_=NoticeState.WAITING),
                "due_at": case((under_way, notices.c.due_at), else_=new.due_at),
                "attempts": case((under_way, notices.c.attempts), else_=0),
                "plain": False,
                # Whether a card's post arrived stays open till its ts is known; all else can safely be done twice.
                "uncertain": case((_CARD_NOT_POSTED, notices.c.uncertain), else_=False),
                "problem": "",
            },
        )

    async def keep_early_reply(self, reply: Reply) -> bool:
        """Keeps a reply that may be to a card on its way (see the port)."""
        # The lock on those threads makes this wait for whoever is about to record where the card is.
        locking = _CARDS_ON_THEIR_WAY.with_for_update(of=threads, key_share=True)
        expected = await self._rows(locking, channel=reply.channel_id)
        if not any(_seconds(reply.thread_ts) >= row[threads.c.created_at] - _SKEW for row in expected):
            return False
        values = {column.name: getattr(reply, column.name) for column in early_replies.c if hasattr(reply, column.name)}
        values |= {"person_id": reply.person.id, "team_id": reply.person.team_id}
        await self._connection.execute(self._insert(early_replies).values(values).on_conflict_do_nothing())
        return True

    async def take_early_replies(self, channel_id: str, thread_ts: str) -> Sequence[Reply]:
        """Takes out the replies that were kept for this thread (see the port)."""
        rows = await self._rows(_EARLY_REPLIES, channel=channel_id, card_ts=thread_ts)
        mine: ColumnElement[bool] = early_replies.c.thread_ts == thread_ts
        if not await self._rows(_CARDS_ON_THEIR_WAY, channel=channel_id):
            mine = true()
        await self._connection.execute(delete(early_replies).where(early_replies.c.channel_id == channel_id, mine))
        return [
            Reply(Person(row["person_id"], row["team_id"]), channel_id, thread_ts, row["message_ts"], row["text"])
            for row in rows
        ]

    async def thread_at(self, channel_id: str, ts: str) -> Thread | None:
        """The thread whose card has this `ts`, locked till the end of the transaction."""
        return await self._locked_thread(_THREAD_AT, channel=channel_id, card_ts=ts)

    async def save_known(self, thread_id: str, known: Known, *, poll_in: float | None) -> None:
        """Saves what is known, and makes the watch due; whoever polls at this moment is not joined by another."""
        await self._connection.execute(
            update(threads)
            .where(threads.c.id == thread_id)
            .values(**known_values(known), revision=threads.c.revision + 1, touched_at=self._now)
        )
        next_poll: dict[str, Any] = {"due_at": self._now + poll_in} if poll_in is not None else _NO_POLL
        await self._connection.execute(update(watches).where(watches.c.thread_id == thread_id).values(next_poll))

    async def set_card(self, thread_id: str, ts: str) -> None:
        """Records where the card was posted."""
        await self._connection.execute(update(threads).where(threads.c.id == thread_id).values(ts=ts))

    async def request(self, request_id: str) -> Request | None:
        """One request, locked, its thread first."""
        for row in await self._rows(_THREAD_OF, request=request_id):
            await self._lock(row[requests.c.thread_id])
        rows = await self._rows(_REQUEST, request=request_id)
        return request_from(rows[0]) if rows else None

    async def start_request(self, thread_id: str) -> Request | None:
        """The request that started the thread."""
        rows = await self._rows(_START, thread=thread_id)
        return request_from(rows[0]) if rows else None

    async def open_follow_ups(self, thread_id: str) -> Sequence[Request]:
        """The thread's follow-ups that wait to be sent, in the order they were written."""
        readable: list[Request] = []
        unreadable: list[tuple[str, UnreadableRow]] = []
        for row in await self._rows(_FOLLOW_UPS, thread=thread_id):
            try:
                readable.append(request_from(row))
            except UnreadableRow as error:
                unreadable.append((row[requests.c.id], error))
        await self._set_aside(requests, unreadable)
        return readable

    async def settle_request(
        self, request_id: str, state: RequestState, *, problem: str = "", due_in: float = 0.0, afresh: bool = False
    ) -> None:
        """Ends a request, or (WAITING) makes it due again in that many seconds; frees its claim (see the port)."""
        values: dict[str, Any] = {"state": state, "problem": problem, "claimed_by": None, "claimed_until": None}
        values["due_at"] = self._now + due_in if state is RequestState.WAITING else None
        if afresh:
            values["first_tried_at"] = None
        await self._connection.execute(update(requests).where(requests.c.id == request_id).values(values))

    async def holds_request(self, request_id: str, owner: str) -> bool:
        """Whether `owner` still has the claim: it has until somebody else takes it, even when its lease ran out."""
        return bool(await self._rows(_HELD, request=request_id, owner=owner))


def _seconds(ts: str) -> float:
    """The time in a `ts`; nothing that can't be read is late enough to answer a card."""
    try:
        return float(ts)
    except ValueError:
        return 0.0
