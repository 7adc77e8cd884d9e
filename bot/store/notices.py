"""The notices to be delivered to threads: recording them, and the outbox, which is the queue of open ones. A result
counts only while its owner holds the claim.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import (
    Boolean,
    Double,
    Executable,
    Update,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    not_,
    null,
    or_,
    select,
    update,
)

from bot.domain.notices.content import Delivery
from bot.domain.notices.deliver import ReactionProgress
from bot.domain.notices.keys import NoticeKey, in_database
from bot.domain.notices.messages import NewNotice, Notice
from bot.domain.notices.notification import overtakes_held
from bot.domain.slack_limits import SLACK_LIMITS, SlackLimits
from bot.ports.store import ClaimedNotice
from bot.store.claims import FREE
from bot.store.notice_claims import NoticeClaims, comes_into_doubt
from bot.store.schema.column_types import CleanText
from bot.store.schema.rows import (
    LASTING,
    notice_values,
    reactions_text,
)
from bot.store.schema.tables import NoticeState, notices, threads
from bot.store.session import InsertInto, Session, for_each_dialect
from bot.store.slack_calls import SqlSlackCalls

_BY_KEY = select(notices.c.id).where(notices.c.key == bindparam("key"))
_OPEN_BY_KEY = _BY_KEY.where(notices.c.due_at.is_not(None))
_CARD_NOT_POSTED = and_(
    notices.c.delivery == Delivery.CARD,
    # Given as text: SQLAlchemy cannot correlate a subquery with an upsert's SET, since that is no SELECT. It would
    # add `notices` to the FROM, and the result would be that of any notice.
    exists().where(threads.c.id == literal_column("notices.thread_id"), threads.c.card_ts.is_(None)),
)
_CALLED_OFF = and_(
    notices.c.state == NoticeState.GIVEN_UP,
    notices.c.delivery == Delivery.CARD,
    exists().where(
        threads.c.id == literal_column("notices.thread_id"), threads.c.card_ts.is_(None), threads.c.job_id.is_not(None)
    ),
)
"""The card of a job that was created before it, and is stopped because it cannot be posted."""
_SENDING = notices.c.state == NoticeState.SENDING


def _add_or_reopen(into: InsertInto) -> Executable:
    """A notice in progress stays claimed: its holder's result closes only the revision that was delivered."""
    insert = into(notices)
    new = insert.excluded
    return insert.on_conflict_do_update(
        where=not_(_CALLED_OFF),
        index_elements=[notices.c.key],
        set_={
            "message": new.message,
            "person_id": new.person_id,
            "revision": notices.c.revision + 1,
            "state": case((_SENDING, notices.c.state), else_=NoticeState.WAITING),
            "due_at": case((_SENDING, notices.c.due_at), else_=new.due_at),
            "attempts": case((_SENDING, notices.c.attempts), else_=0),
            "without_blocks": False,
            # Whether a card's post arrived is uncertain until its ts is known; everything else can safely be repeated.
            "uncertain": case((_CARD_NOT_POSTED, notices.c.uncertain), else_=False),
            # While a reaction is being sent or uncertain, only its sender knows which ones are shown.
            "reactions_shown": case((or_(_SENDING, notices.c.uncertain), null()), else_=notices.c.reactions_shown),
            "reaction_added": new.reaction_added,
            "only_progress": and_(new.only_progress, or_(notices.c.only_progress, notices.c.due_at.is_(None))),
            "problem": "",
        },
    )


_ADD = for_each_dialect(lambda into: into(notices).on_conflict_do_nothing(index_elements=[notices.c.key]))
_ADD_OR_REOPEN = for_each_dialect(_add_or_reopen)
_DROP_HELD = delete(notices).where(
    notices.c.thread_id == bindparam("thread"),
    notices.c.due_at > bindparam("now", type_=Double),
    notices.c.delivery == Delivery.POST,
    notices.c.state == NoticeState.WAITING,
    notices.c.attempts == 0,
)
"""Posts that were never attempted and are not due yet, so nobody has seen them or is about to."""

_TRY_AGAIN = (
    update(notices)
    .where(notices.c.key == bindparam("of_key"), notices.c.state == NoticeState.GIVEN_UP)
    .values(state=NoticeState.WAITING, due_at=bindparam("now", type_=Double), attempts=0, uncertain=True, problem="")
)

_CLAIMED = and_(notices.c.id == bindparam("notice"), notices.c.claimed_by == bindparam("owner"), _SENDING)
_NEWEST = notices.c.revision == bindparam("claimed_revision")
_DONE_WITH_NEWEST = and_(_NEWEST, bindparam("done", type_=Boolean))


def _ending(state: NoticeState, **values: Any) -> Update:
    """Ends the revision that was claimed; a newer one is due at once."""
    return (
        update(notices)
        .where(_CLAIMED)
        .values(
            state=case((_NEWEST, state), else_=NoticeState.WAITING),
            due_at=case((_NEWEST, null()), else_=bindparam("now", type_=Double)),
            attempts=case((_NEWEST, notices.c.attempts), else_=0),
            **values,
            **FREE,
        )
    )


_DELIVERED = _ending(
    NoticeState.DONE,
    posted_ts=func.coalesce(bindparam("posted", type_=CleanText), notices.c.posted_ts),
    uncertain=False,
    problem="",
)
_REACTED = (
    update(notices)
    .where(_CLAIMED)
    .values(
        state=case((_DONE_WITH_NEWEST, NoticeState.DONE), else_=NoticeState.WAITING),
        due_at=case((_DONE_WITH_NEWEST, null()), else_=bindparam("now", type_=Double)),
        attempts=case((_DONE_WITH_NEWEST, notices.c.attempts), else_=0),
        reactions_shown=bindparam("shown"),
        reaction_added=or_(_NEWEST, notices.c.reaction_added),
        uncertain=False,
        problem="",
        **FREE,
    )
)
_GIVE_UP = _ending(NoticeState.GIVEN_UP, problem=bindparam("why"))
_MAY_HAVE_ARRIVED = bindparam("may_have_arrived", type_=Boolean)
_POSTPONE = (
    update(notices)
    .where(_CLAIMED)
    .values(
        state=NoticeState.WAITING,
        due_at=bindparam("next_at", type_=Double),
        uncertain=or_(notices.c.uncertain, _MAY_HAVE_ARRIVED),
        attempts=case((comes_into_doubt(_MAY_HAVE_ARRIVED), 0), else_=notices.c.attempts),
        without_blocks=or_(notices.c.without_blocks, and_(_NEWEST, bindparam("refused_blocks", type_=Boolean))),
        # The earlier reaction is still on the reply unless this attempt may have changed it.
        reactions_shown=case((_MAY_HAVE_ARRIVED, notices.c.reactions_shown), else_=bindparam("shown")),
        problem=bindparam("why"),
        **FREE,
    )
)


class SqlNotices:
    """ports.NoticeQueue."""

    def __init__(self, session: Session, slack_calls: SqlSlackCalls) -> None:
        self._session = session
        self._claims = NoticeClaims(session, slack_calls)

    async def add(self, thread_id: str, notice: NewNotice) -> None:
        await self._session.lock_thread(thread_id)
        await self.insert([(thread_id, notice)])

    async def insert(self, new: Iterable[tuple[str, NewNotice]]) -> None:
        """Records notices in threads that are locked, or in which nobody else records notices."""
        new, session = list(new), self._session
        for thread_id in dict.fromkeys(thread_id for thread_id, notice in new if overtakes_held(notice.message)):
            await self.drop_held(thread_id)
        once: list[dict[str, Any]] = []
        lasting: list[dict[str, Any]] = []
        for thread_id, notice in new:
            rows = lasting if notice.message.delivery in LASTING else once
            rows.append(notice_values(thread_id, notice, session.now))
        if once:
            await session.execute(_ADD[session.dialect], once)
        if lasting:
            await session.execute(_ADD_OR_REOPEN[session.dialect], lasting)

    async def try_again(self, thread_id: str, key: NoticeKey) -> None:
        await self._session.lock_thread(thread_id)
        await self._session.execute(_TRY_AGAIN, {"of_key": in_database(thread_id, key), "now": self._session.now})

    async def drop_held(self, thread_id: str) -> None:
        await self._session.execute(_DROP_HELD, {"thread": thread_id, "now": self._session.now})

    async def has(self, thread_id: str, key: NoticeKey) -> bool:
        return bool(await self._session.rows(_BY_KEY, key=f"{thread_id}/{key}"))

    async def is_open(self, thread_id: str, key: NoticeKey) -> bool:
        return bool(await self._session.rows(_OPEN_BY_KEY, key=in_database(thread_id, key)))

    async def move(self, key: NoticeKey, from_thread: str, to_thread: str) -> None:
        values = {"key": in_database(to_thread, key), "thread_id": to_thread}
        await self._session.execute(
            update(notices).where(notices.c.key == in_database(from_thread, key)).values(values)
        )

    async def claim(
        self,
        owner: str,
        *,
        lease: float,
        limit: int,
        limits: SlackLimits = SLACK_LIMITS,
        max_reactions: int | None = None,
    ) -> Sequence[ClaimedNotice]:
        most = limit if max_reactions is None else max_reactions
        return await self._claims.claim(owner, lease=lease, limit=limit, limits=limits, max_reactions=most)

    async def delivered(self, notice: Notice, owner: str, *, ts: str | None) -> bool:
        return await self._result(_DELIVERED, notice, owner, now=self._session.now, posted=ts)

    async def reacted(self, notice: Notice, owner: str, progress: ReactionProgress) -> bool:
        shown = reactions_text(progress.shown)
        return await self._result(_REACTED, notice, owner, now=self._session.now, shown=shown, done=progress.done)

    async def give_up(self, notice: Notice, owner: str, *, problem: str) -> bool:
        return await self._result(_GIVE_UP, notice, owner, now=self._session.now, why=problem)

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
        shown = None if notice.uncertain else notice.reactions_shown
        values = {
            "next_at": self._session.now + due_in,
            "may_have_arrived": uncertain,
            "refused_blocks": without_blocks,
            "why": problem,
            "shown": None if shown is None else reactions_text(shown),
        }
        return await self._result(_POSTPONE, notice, owner, **values)

    async def _result(self, statement: Update, notice: Notice, owner: str, **values: Any) -> bool:
        held = {"notice": notice.id, "owner": owner, "claimed_revision": notice.revision}
        result = await self._session.execute(statement, held | values)
        return result.rowcount == 1
