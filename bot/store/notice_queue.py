"""The outbox, the queue of open notices. A result counts only while its owner holds the claim.

A claim takes of each kind as many as Slack's limits allow now, more important kinds first. Each kind has its own index,
so waiting notices of another kind cost nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    RowMapping,
    Select,
    Update,
    and_,
    bindparam,
    case,
    exists,
    false,
    func,
    not_,
    null,
    or_,
    select,
    update,
)

from bot.domain.delivery import ReactionProgress
from bot.domain.requests.request import RequestKind, RequestState, WayIn
from bot.domain.slack_limits import SLACK_LIMITS, Budget, CallKind, SlackLimits
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread
from bot.notices.notice import Delivery, Notice
from bot.queue.claims import FREE, NOW, due, first_due
from bot.queue.columns import CleanText
from bot.store.claims import PATIENCE, claim_candidates, claiming, leave_newer_kinds
from bot.store.notices import SENDING, Notices
from bot.store.schema.rows import (
    LASTING,
    PULL_REQUEST,
    message_text,
    notice_from,
    thread_from,
    thread_to_speak_in,
    unknown_kind,
)
from bot.store.schema.tables import NoticeState, notices, pull_requests, requests, threads
from bot.store.session import Session
from bot.store.slack_calls import SlackCalls


@dataclass(frozen=True)
class ClaimedNotice:
    """A notice to deliver, with its thread as it is now. `follow_ups` are only counted for a CARD or an EPHEMERAL."""

    notice: Notice
    thread: Thread
    follow_ups: FollowUpCounts = NO_FOLLOW_UPS


def _has_replies() -> ColumnElement[bool]:
    """Returns the condition that a Slack thread has a reply, as far as the database knows."""
    posts = notices.alias("posted")
    written = select(requests.c.id).where(
        requests.c.thread_id == threads.c.id,
        requests.c.kind != RequestKind.START,
        requests.c.way_in.in_([WayIn.REPLY, WayIn.MENTION, WayIn.WORD]),
    )
    said = select(posts.c.id).where(
        posts.c.thread_id == threads.c.id, posts.c.delivery == Delivery.POST, posts.c.posted_ts.is_not(None)
    )
    # One row each, not EXISTS, for which PostgreSQL would hash the whole table.
    found = or_(*(one.limit(1).scalar_subquery().is_not(None) for one in (written, said)))
    return case((notices.c.delivery == Delivery.EPHEMERAL, found), else_=false())


_HAS_REPLIES = _has_replies().label("has_replies")
"""For the thread of a notice to one person; not queried for others."""
_REACTIONS = frozenset({CallKind.ADD_REACTION, CallKind.ADD_LATE_REACTION, CallKind.REMOVE_REACTION})
_LATE = notices.c.due_at <= NOW - 26.0
"""A check mark then comes half a minute after its reply, which took a few seconds to be sent."""


def _place(table: FromClause) -> ColumnElement[int]:
    """The card comes first, because in somebody else's thread other notices can be recorded before the card."""
    return case((table.c.delivery == Delivery.CARD, 0), else_=table.c.id)


def _follow_ups(state: ColumnElement[bool]) -> ColumnElement[int]:
    """Counts the follow-ups of the thread in this state, but only for notices that show the number."""
    counted = select(func.count()).where(
        requests.c.thread_id == threads.c.id, requests.c.kind == RequestKind.FOLLOW_UP, state
    )
    return case((notices.c.delivery.in_([Delivery.CARD, Delivery.EPHEMERAL]), counted.scalar_subquery()), else_=0)


_SENT = _follow_ups(requests.c.state == RequestState.ACCEPTED).label("follow_ups_sent")
_WAITING = _follow_ups(requests.c.due_at.is_not(None)).label("follow_ups_waiting")


def _first(has_card: ColumnElement[bool]) -> ColumnElement[bool]:
    """Returns the condition that the notice waits for no other open one of its thread.

    Private messages do not wait for posts, which may wait for a card that cannot come before they are answered. They
    wait for the card to be posted, but not for its edits, which Slack limits more strictly. Nothing waits for a
    reminder that is not due. A reaction is a single row and has no place in the order: it waits for nothing, and
    nothing waits for it.
    """
    other = notices.alias("other")
    told = or_(notices.c.delivery != Delivery.EPHEMERAL, other.c.delivery != Delivery.POST)
    edited = and_(notices.c.delivery != Delivery.CARD, other.c.delivery == Delivery.CARD, has_card)
    untried = and_(other.c.attempts == 0, not_(other.c.uncertain), other.c.due_at > NOW)
    return ~exists().where(
        other.c.thread_id == notices.c.thread_id,
        other.c.due_at.is_not(None),
        other.c.delivery != Delivery.REACTION,
        notices.c.delivery != Delivery.REACTION,
        and_(told, not_(edited), not_(and_(other.c.delivery == Delivery.EPHEMERAL, untried))),
        or_(_place(other) < _place(notices), other.c.claimed_until > NOW),
    )


_POSTED = threads.c.card_ts.is_not(None)
_FIRST = _first(_POSTED)
"""For queries that join the notice's thread; the claim itself, of a few rows, queries it."""
_thread = threads.alias("thread_of_notice")
_CARD_OF_NOTICE = (
    select(_thread.c.card_ts).where(_thread.c.id == notices.c.thread_id).correlate(notices).scalar_subquery()
)
_HAS_CARD = or_(threads.c.card_ts.is_not(None), threads.c.ts.is_(None))
"""A post waits for its thread's card. Without a thread there will be no card, and the post goes to one person."""
_CONDITIONS: dict[CallKind, tuple[Delivery, ColumnElement[bool]]] = {
    CallKind.EPHEMERAL: (Delivery.EPHEMERAL, _FIRST),
    CallKind.FIRST_CARD: (Delivery.CARD, and_(_FIRST, not_(_POSTED))),
    CallKind.POST: (Delivery.POST, and_(_FIRST, _HAS_CARD)),
    CallKind.CARD: (Delivery.CARD, and_(_FIRST, _POSTED, not_(notices.c.only_progress))),
    CallKind.CARD_PROGRESS: (Delivery.CARD, and_(_FIRST, _POSTED, notices.c.only_progress)),
    CallKind.ADD_REACTION: (Delivery.REACTION, and_(not_(notices.c.reaction_added), not_(_LATE))),
    CallKind.ADD_LATE_REACTION: (Delivery.REACTION, and_(not_(notices.c.reaction_added), _LATE)),
    CallKind.REMOVE_REACTION: (Delivery.REACTION, notices.c.reaction_added),
}


def _candidates(delivery: Delivery, condition: ColumnElement[bool]) -> Select[Any]:
    held = threads.c.channel_id.not_in(bindparam("held_channels", expanding=True))
    of_kind = (
        select(notices, threads, PULL_REQUEST, _SENT, _WAITING, _HAS_REPLIES)
        .join(threads, threads.c.id == notices.c.thread_id)
        .outerjoin(pull_requests, pull_requests.c.thread_id == threads.c.id)
        .where(notices.c.delivery == delivery, condition, held)
    )
    return first_due(of_kind, notices, of=[notices, threads], key_share=True)


_CANDIDATES = {kind: _candidates(*of_kind) for kind, of_kind in _CONDITIONS.items()}


def _oldest_due(delivery: Delivery) -> ColumnElement[Any]:
    """Finds one due row, if any, in the order of the index, no matter how many rows are finished."""
    due_ones = select(notices.c.id).where(notices.c.delivery == delivery, due(notices))
    return due_ones.order_by(notices.c.due_at).limit(1).scalar_subquery().label(delivery.value)


_DUE = select(*map(_oldest_due, Delivery))


_COMES_INTO_DOUBT = and_(notices.c.delivery == Delivery.EPHEMERAL, not_(notices.c.uncertain))
"""A private message has not been in doubt before: from here on, attempts are counted anew, because it is repeated only
a few times.
"""
_LEASE_RAN_OUT = notices.c.state == NoticeState.SENDING
_CLAIM = claiming(
    notices,
    _first(_CARD_OF_NOTICE.is_not(None)),
    state=NoticeState.SENDING,
    uncertain=or_(notices.c.uncertain, _LEASE_RAN_OUT),
    attempts=case((and_(_COMES_INTO_DOUBT, _LEASE_RAN_OUT), 1), else_=notices.c.attempts + 1),
)
_NEWEST = notices.c.revision == bindparam("claimed_revision")


def _held() -> Update:
    """A notice that is being delivered."""
    by_owner = notices.c.claimed_by == bindparam("owner")
    return update(notices).where(notices.c.id == bindparam("notice"), by_owner, SENDING)


def _ending(state: NoticeState, **values: Any) -> Update:
    """Ends the revision that was claimed; a newer one is due at once."""
    return _held().values(
        state=case((_NEWEST, state), else_=NoticeState.WAITING),
        due_at=case((_NEWEST, null()), else_=NOW),
        attempts=case((_NEWEST, notices.c.attempts), else_=0),
        **values,
        **FREE,
    )


_POSTED_TS = func.coalesce(bindparam("ts", type_=CleanText), notices.c.posted_ts)
_DELIVERED = _ending(NoticeState.DONE, uncertain=False, problem="", posted_ts=_POSTED_TS)
_GIVE_UP = _ending(NoticeState.GIVEN_UP, problem=bindparam("reason"))
_REACTION: dict[str, Any] = {
    "reactions_shown": bindparam("shown"),
    "reaction_added": or_(_NEWEST, notices.c.reaction_added),
    "uncertain": False,
    "problem": "",
}
_REACTED = _ending(NoticeState.DONE, **_REACTION)
_REACT_AGAIN = _held().values(state=NoticeState.WAITING, due_at=NOW, attempts=0, **_REACTION, **FREE)


class NoticeQueue(Notices):
    """The same, with delivering. Each result is False if `owner` had lost the claim."""

    def __init__(self, session: Session, slack_calls: SlackCalls) -> None:
        super().__init__(session)
        self._slack_calls = slack_calls

    async def claim(
        self,
        owner: str,
        *,
        lease: float,
        limit: int,
        limits: SlackLimits = SLACK_LIMITS,
        max_reactions: int | None = None,
    ) -> Sequence[ClaimedNotice]:
        """Claims due notices: any REACTION (at most `max_reactions`), and otherwise the first open one of each thread
        (the CARD, then by id; an EPHEMERAL does not wait for a POST, a POST waits for the card). Of each kind it claims
        as many as may be called now, in the order of CallKind; each counts as a call. Counts the attempt. One whose
        lease ran out while it was being sent is claimed as uncertain.
        """
        [due_now] = await self._session.rows(_DUE, now=self._session.now)
        kinds = [kind for kind, (delivery, _) in _CONDITIONS.items() if due_now[delivery.value] is not None]
        if not kinds:
            return []
        budget = await self._slack_calls.budget({kind.method for kind in kinds}, limits)
        found: list[RowMapping] = []
        reactions = limit if max_reactions is None else max_reactions
        for kind in kinds:
            words = sum(row[notices.c.delivery] != Delivery.REACTION for row in found)
            most = min(limit, words + reactions) if kind in _REACTIONS else limit
            found += await self._of_kind(kind, most - len(found), budget)
        await self._slack_calls.record(budget)
        claimed, _ = await claim_candidates(self._session, _CLAIM, found, _claimed, owner=owner, lease=lease)
        return claimed

    async def keep_content(self, notice: Notice, owner: str) -> bool:
        """Saves what a notice that is being delivered says."""
        held = update(notices).where(notices.c.id == notice.id, notices.c.claimed_by == owner, SENDING)
        return (await self._session.execute(held.values(message=message_text(notice.message)))).rowcount == 1

    async def delivered(self, notice: Notice, owner: str, *, ts: str | None) -> bool:
        """Ends a notice; a CARD or REACTION with a newer revision stays open. `ts`: the message's, if there is one."""
        return await self._end(_DELIVERED, notice, owner, ts=ts)

    async def reacted(self, notice: Notice, owner: str, progress: ReactionProgress) -> bool:
        """Records that Slack accepted a call for a REACTION: the notice ends, or is due again for the next call."""
        statement = _REACTED if progress.done else _REACT_AGAIN
        return await self._end(statement, notice, owner, shown=" ".join(progress.shown))

    async def postpone(
        self,
        notice: Notice,
        owner: str,
        *,
        due_in: float,
        uncertain: bool = False,
        without_blocks: bool = False,
        problem: str = "",
    ) -> bool:
        """Makes a notice due again in this many seconds. `uncertain`: it may have arrived, which holds until it is
        delivered. `without_blocks`: Slack refused it with them.
        """
        values: dict[str, Any] = {"due_at": self._session.now + due_in, "problem": problem}
        if uncertain:
            values["uncertain"] = True
            values["attempts"] = case((_COMES_INTO_DOUBT, 0), else_=notices.c.attempts)
        else:
            # The earlier reaction is still on the reply: this attempt cannot have changed it.
            shown = None if notice.uncertain else notice.reactions_shown
            values["reactions_shown"] = None if shown is None else " ".join(shown)
        if without_blocks:
            values["without_blocks"] = or_(notices.c.without_blocks, notices.c.revision == notice.revision)
        return await self._save(_held().values(state=NoticeState.WAITING, **values, **FREE), notice, owner)

    async def give_up(self, notice: Notice, owner: str, *, problem: str) -> bool:
        """Ends a notice that cannot be delivered, and records the reason; a newer revision is still tried."""
        return await self._end(_GIVE_UP, notice, owner, reason=problem)

    async def _of_kind(self, kind: CallKind, room: int, budget: Budget) -> list[RowMapping]:
        most = min(room, budget.calls(kind))
        if most <= 0:
            return []
        held, now = budget.held_channels(kind), self._session.now
        rows = await self._session.rows(_CANDIDATES[kind], now=now, limit=most, held_channels=held)
        found = await leave_newer_kinds(self._session, notices, rows, partial(_unknown_kind, now=now))
        return [row for row in found if budget.spend(kind, row[threads.c.channel_id])]

    async def _end(self, statement: Update, notice: Notice, owner: str, **values: object) -> bool:
        return await self._save(
            statement, notice, owner, claimed_revision=notice.revision, now=self._session.now, **values
        )

    async def _save(self, statement: Update, notice: Notice, owner: str, **values: object) -> bool:
        saved = await self._session.execute(statement, {"notice": notice.id, "owner": owner, **values})
        return saved.rowcount == 1


def _unknown_kind(row: RowMapping, *, now: float) -> str | None:
    """The kind of a notice that only a newer version knows, while it is left to that one. A posted card and a reaction
    stay so until this version changes them: nothing waits for them.
    """
    holds_up_others = row[notices.c.delivery] not in LASTING or (
        row[notices.c.delivery] == Delivery.CARD and row[threads.c.card_ts] is None
    )
    if holds_up_others and now - row[notices.c.created_at] >= PATIENCE:
        return None
    return unknown_kind(row[notices.c.message])


def _claimed(before: RowMapping, now: RowMapping) -> ClaimedNotice:
    notice = notice_from(now)
    # A card shows the job; everything else can be sent without it.
    thread = thread_from(before) if notice.delivery is Delivery.CARD else thread_to_speak_in(before)
    thread = replace(thread, has_replies=bool(before[_HAS_REPLIES]))
    return ClaimedNotice(notice, thread, FollowUpCounts(before[_SENT], before[_WAITING]))
