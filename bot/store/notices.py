"""The notices to be delivered to threads."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    Double,
    Executable,
    and_,
    bindparam,
    case,
    delete,
    exists,
    literal_column,
    not_,
    null,
    or_,
    select,
    update,
)

from bot.notices.notice import Delivery, NewNotice, NoticeKey, PostOutdated, in_database
from bot.queue.transaction import InsertInto, adding, for_each_dialect
from bot.store.schema.rows import LASTING, notice_values
from bot.store.schema.tables import NoticeState, notices, threads
from bot.store.session import Part

_WITHOUT_CARD = exists().where(
    # Given as text: SQLAlchemy cannot correlate a subquery with an upsert's SET, since that is no SELECT. It would add
    # `notices` to the FROM, and the result would be that of any notice.
    threads.c.id == literal_column("notices.thread_id"),
    threads.c.card_ts.is_(None),
)
_IS_CARD = notices.c.delivery == Delivery.CARD
_CALLED_OFF = and_(
    notices.c.state == NoticeState.GIVEN_UP, _IS_CARD, _WITHOUT_CARD.where(threads.c.job_id.is_not(None))
)
"""The card of a job that was created before it, and is stopped because it cannot be posted."""
SENDING = notices.c.state == NoticeState.SENDING


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
            "state": case((SENDING, notices.c.state), else_=NoticeState.WAITING),
            "due_at": case((SENDING, notices.c.due_at), else_=new.due_at),
            "attempts": case((SENDING, notices.c.attempts), else_=0),
            "without_blocks": False,
            # Whether a card's post arrived is uncertain until its ts is known; everything else can safely be repeated.
            "uncertain": case((and_(_IS_CARD, _WITHOUT_CARD), notices.c.uncertain), else_=False),
            # While a reaction is being sent or uncertain, only its sender knows which ones are shown.
            "reactions_shown": case((or_(SENDING, notices.c.uncertain), null()), else_=notices.c.reactions_shown),
            "reaction_added": new.reaction_added,
            "only_progress": and_(new.only_progress, or_(notices.c.only_progress, notices.c.due_at.is_(None))),
            "problem": "",
        },
    )


_REOPEN = (
    update(notices)
    .where(
        notices.c.key == bindparam("post"),
        or_(notices.c.state != NoticeState.GIVEN_UP, notices.c.posted_ts.is_not(None)),
    )
    .values(
        revision=notices.c.revision + 1,
        state=case((SENDING, notices.c.state), else_=NoticeState.WAITING),
        due_at=case((SENDING, notices.c.due_at), else_=bindparam("now", type_=Double)),
        attempts=case((SENDING, notices.c.attempts), else_=0),
        reactions_shown=null(),
        reaction_added=False,
        problem="",
    )
)
"""One in progress stays claimed, as a lasting one does."""
_ADD = adding(notices)
_ADD_OR_REOPEN = for_each_dialect(_add_or_reopen)


class Notices(Part):
    """The notices to be delivered to threads."""

    async def add(self, thread_id: str, notice: NewNotice) -> None:
        """Records a notice. One with a key known in the thread is ignored, except that a CARD or REACTION gets the new
        message and a higher revision, and is reopened, unless it is the card of a job that was given up before it was
        posted. An end deletes the posts that are held back.
        """
        await self._session.lock_thread(thread_id)
        await self.insert([(thread_id, notice)])

    async def insert(self, new: Iterable[tuple[str, NewNotice]]) -> None:
        """Records notices in threads that are locked, or in which nobody else records notices."""
        new, session = list(new), self._session
        for thread_id in dict.fromkeys(thread_id for thread_id, notice in new if notice.message.ends_work):
            await self.drop_held(thread_id)
        once: list[dict[str, Any]] = []
        lasting: list[dict[str, Any]] = []
        outdated: list[dict[str, Any]] = []
        for thread_id, notice in new:
            if isinstance(notice.message, PostOutdated):
                outdated.append({"post": in_database(thread_id, notice.key), "now": session.now})
                continue
            rows = lasting if notice.message.delivery in LASTING else once
            rows.append(notice_values(thread_id, notice, session.now))
        if once:
            await session.execute(_ADD, once)
        if lasting:
            await session.execute(_ADD_OR_REOPEN, lasting)
        if outdated:
            await session.execute(_REOPEN, outdated)

    async def move(self, key: NoticeKey, from_thread: str, to_thread: str) -> None:
        """Moves the notice about a message, if there is one, to another thread; both are locked."""
        this = update(notices).where(notices.c.key == in_database(from_thread, key))
        await self._session.execute(this.values(key=in_database(to_thread, key), thread_id=to_thread))

    async def try_again(self, thread_id: str, key: NoticeKey) -> None:
        """Makes a notice due again that was given up. It is looked for first, since it may have arrived."""
        await self._session.lock_thread(thread_id)
        given_up = (notices.c.key == in_database(thread_id, key), notices.c.state == NoticeState.GIVEN_UP)
        again = {"state": NoticeState.WAITING, "due_at": self._session.now, "attempts": 0, "uncertain": True}
        await self._session.execute(update(notices).where(*given_up).values(problem="", **again))

    async def drop_held(self, thread_id: str) -> None:
        """Deletes the posts that are held back in the thread, which is locked: those that are not due yet."""
        # Those that were never attempted: nobody has seen them or is about to.
        held = (
            notices.c.thread_id == thread_id,
            notices.c.due_at > self._session.now,
            notices.c.delivery == Delivery.POST,
            notices.c.state == NoticeState.WAITING,
            notices.c.attempts == 0,
        )
        await self._session.execute(delete(notices).where(*held))

    async def posted_ts(self, thread_id: str, key: NoticeKey) -> str:
        """Returns the `ts` of the post with this key; empty if there is none yet."""
        this = select(notices.c.posted_ts).where(notices.c.key == in_database(thread_id, key))
        rows = await self._session.rows(this)
        return (rows[0]["posted_ts"] or "") if rows else ""

    async def is_open(self, thread_id: str, key: NoticeKey) -> bool:
        """Returns whether a notice with this key is still to be delivered in the thread, which is locked."""
        this = (notices.c.key == in_database(thread_id, key), notices.c.due_at.is_not(None))
        return bool(await self._session.rows(select(notices.c.id).where(*this)))
