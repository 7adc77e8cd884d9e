"""Results: what became of what was claimed. A result counts only while its owner holds the claim."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Double, Select, and_, bindparam, case, false, func, null, or_, select, true, update

from bot.domain.models import Notice, NoticeKind, RequestState, Saying, What
from bot.ports import Polled
from bot.store.recording import Recording
from bot.store.rows import known_values
from bot.store.tables import NoticeState, notices, requests, threads, watches

CARD = Saying("card", What.CARD, kind=NoticeKind.CARD)

_FREE: dict[str, Any] = {"claimed_by": None, "claimed_until": None}
_REVISIONS = (
    select(threads.c.id, threads.c.revision)
    .where(threads.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(threads.c.id)
)
_LOCKED_REVISIONS = _REVISIONS.with_for_update(key_share=True)
_HELD_WATCHES = (
    select(watches.c.thread_id)
    .where(watches.c.thread_id.in_(bindparam("ids", expanding=True)), watches.c.claimed_by == bindparam("owner"))
    .order_by(watches.c.thread_id)
    .with_for_update()
)
_NEXT_POLL = (
    update(watches)
    .where(watches.c.thread_id == bindparam("thread"))
    .values(due_at=bindparam("next_at", type_=Double), **_FREE)
)
_FREE_WATCHES = update(watches).where(watches.c.thread_id.in_(bindparam("ids", expanding=True))).values(**_FREE)
_SAVE_KNOWN = (
    update(threads)
    .where(threads.c.id == bindparam("thread"))
    .values(
        known=bindparam("known_now"),
        job_id=bindparam("job_now"),
        revision=threads.c.revision + 1,
        touched_at=bindparam("now", type_=Double),
    )
)


class Results(Recording):
    """The methods of Transaction under "results"."""

    async def notice_done(self, notice: Notice, owner: str, *, ts: str | None) -> bool:
        """Delivered; False where `owner` had lost the claim."""
        return await self._close(
            notice,
            owner,
            NoticeState.DONE,
            posted_ts=func.coalesce(ts, notices.c.posted_ts),
            uncertain=False,
            problem="",
        )

    async def notice_given_up(self, notice: Notice, owner: str, *, problem: str) -> bool:
        """Can't be delivered (a newer revision is tried all the same); the reason is kept."""
        return await self._close(notice, owner, NoticeState.GIVEN_UP, problem=problem)

    async def _close(self, notice: Notice, owner: str, state: NoticeState, **values: Any) -> bool:
        """Ends the revision that was claimed: a newer one is due at once."""
        newest = notices.c.revision == notice.revision
        return await self._notice_result(
            notice,
            owner,
            state=case((newest, state), else_=NoticeState.WAITING),
            due_at=case((newest, null()), else_=self._now),
            attempts=case((newest, notices.c.attempts), else_=0),
            **values,
        )

    async def notice_later(
        self,
        notice: Notice,
        owner: str,
        *,
        due_in: float,
        uncertain: bool = False,
        plain: bool = False,
        problem: str = "",
    ) -> bool:
        """Not delivered: due again in that many seconds. Once uncertain, it stays so until it is delivered."""
        newest = notices.c.revision == notice.revision
        return await self._notice_result(
            notice,
            owner,
            state=NoticeState.WAITING,
            due_at=self._now + due_in,
            uncertain=or_(notices.c.uncertain, true() if uncertain else false()),
            plain=or_(notices.c.plain, and_(newest, true() if plain else false())),
            problem=problem,
        )

    async def _notice_result(self, notice: Notice, owner: str, **values: Any) -> bool:
        result = await self._connection.execute(
            update(notices)
            .where(notices.c.id == notice.id, notices.c.claimed_by == owner, notices.c.state == NoticeState.SENDING)
            .values(**values, **_FREE)
        )
        return result.rowcount == 1

    async def save_polls(self, polls: Sequence[Polled], owner: str) -> int:
        """Saves polls whose claim and revision still hold (see the port)."""
        held = await self._held_revisions(polls, owner)
        valid = {poll.thread.id: poll for poll in polls if held.get(poll.thread.id) == poll.thread.revision}
        await self._save_changed([poll for poll in valid.values() if _changed(poll)])
        await self._set_next({thread_id: self._after(poll.next_in) for thread_id, poll in valid.items()})
        await self._free([thread_id for thread_id in held if thread_id not in valid])
        return len(valid)

    async def _held_revisions(self, polls: Sequence[Polled], owner: str) -> dict[str, int]:
        """The revision of each thread whose watch is held. Locks threads before watches, as everybody does, each in
        the order of their ids: so that no two transactions wait for each other.
        """
        revisions: dict[str, int] = {}
        changed = [poll.thread.id for poll in polls if _changed(poll)]
        if changed:
            revisions = await self._pairs(_LOCKED_REVISIONS, changed)
            self._locked.update(revisions)
        ids = [poll.thread.id for poll in polls]
        held = list((await self._connection.execute(_HELD_WATCHES, {"ids": ids, "owner": owner})).scalars())
        # A revision rises only together with a change of the watch, which is locked by now.
        rest = [thread_id for thread_id in held if thread_id not in revisions]
        if rest:
            revisions |= await self._pairs(_REVISIONS, rest)
        return {thread_id: revisions[thread_id] for thread_id in held}

    async def _pairs(self, statement: Select[str, int], ids: list[str]) -> dict[str, int]:
        rows = await self._connection.execute(statement, {"ids": ids})
        return {row[0]: row[1] for row in rows}

    async def _save_changed(self, polls: Sequence[Polled]) -> None:
        if not polls:
            return
        rows = [known_values(poll.known) for poll in polls]
        await self._connection.execute(
            _SAVE_KNOWN,
            [
                {"thread": poll.thread.id, "known_now": row["known"], "job_now": row["job_id"], "now": self._now}
                for poll, row in zip(polls, rows, strict=True)
            ],
        )
        await self._say_all(
            (poll.thread.id, saying)
            for poll in polls
            for saying in (*poll.sayings, *([CARD] if poll.card_changed else []))
        )

    def _after(self, seconds: float | None) -> float | None:
        return None if seconds is None else self._now + seconds

    async def _set_next(self, due_at: dict[str, float | None]) -> None:
        if due_at:
            await self._connection.execute(
                _NEXT_POLL, [{"thread": thread_id, "next_at": at} for thread_id, at in sorted(due_at.items())]
            )

    async def _free(self, ids: list[str]) -> None:
        """Frees watches whose poll is dropped: they are due when whoever changed the thread meanwhile said."""
        if ids:
            await self._connection.execute(_FREE_WATCHES, {"ids": sorted(ids)})

    async def release(self, owner: str) -> None:
        """Frees the watches that `owner` holds; ends the leases of its notices and requests, so that others take them
        at once, as uncertain (what was not begun can be put back by `settle_request` and `notice_later` before).
        """
        await self._connection.execute(update(watches).where(watches.c.claimed_by == owner).values(**_FREE))
        for table, sending in ((notices, NoticeState.SENDING), (requests, RequestState.SENDING)):
            await self._connection.execute(
                update(table)
                .where(table.c.claimed_by == owner, table.c.state == sending)
                .values(claimed_until=self._now, due_at=self._now)
            )


def _changed(poll: Polled) -> bool:
    """Whether more than the next due time is new."""
    return poll.known != poll.thread.known or bool(poll.sayings) or poll.card_changed
