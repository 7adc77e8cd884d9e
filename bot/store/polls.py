"""When each job is polled next, and by whom; what polls told."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Double, Select, bindparam, select, update

from bot.domain.notices import keys
from bot.domain.notices.messages import CARD_CHANGED, NewNotice
from bot.domain.notices.posts import RecordDamaged
from bot.store.claims import CLAIM, FREE, LIMIT, claim_of, due, read_each
from bot.store.notices import Notices
from bot.store.schema.rows import thread_from
from bot.store.schema.tables import polls, threads
from bot.store.session import Session
from bot.store.threads import SAVE_STATE, saved_state
from bot.store_ports import ClaimedPoll, PollResult

_CANDIDATES = (
    select(threads)
    .join(polls, polls.c.thread_id == threads.c.id)
    .where(due(polls))
    .order_by(polls.c.due_at)
    .limit(LIMIT)
    .with_for_update(of=polls, skip_locked=True)
)
_CLAIM = update(polls).where(polls.c.thread_id.in_(bindparam("ids", expanding=True))).values(**CLAIM)
_REVISIONS = (
    select(threads.c.id, threads.c.revision)
    .where(threads.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(threads.c.id)
)
_LOCKED_REVISIONS = _REVISIONS.with_for_update(key_share=True)
_HELD = (
    select(polls.c.thread_id)
    .where(polls.c.thread_id.in_(bindparam("ids", expanding=True)), polls.c.claimed_by == bindparam("owner"))
    .order_by(polls.c.thread_id)
    .with_for_update()
)
_NEXT = (
    update(polls)
    .where(polls.c.thread_id == bindparam("thread"))
    .values(due_at=bindparam("next_at", type_=Double), **FREE)
)
_FREE = update(polls).where(polls.c.thread_id.in_(bindparam("ids", expanding=True))).values(**FREE)


class Polls:
    """ports.Polls."""

    def __init__(self, session: Session, notices: Notices) -> None:
        self._session = session
        self._notices = notices

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedPoll]:
        session = self._session
        found = await session.rows(_CANDIDATES, now=session.now, limit=limit)
        if not found:
            return []
        claimed, unreadable = read_each(
            ((row[threads.c.id], row) for row in found), lambda row: ClaimedPoll(thread_from(row))
        )
        ids = [poll.thread.id for poll in claimed]
        await session.execute(_CLAIM, {"ids": ids, **claim_of(session, owner, lease)})
        await session.end_unreadable(polls, unreadable)
        await self._notices.insert(
            (thread_id, NewNotice(keys.RECORD_DAMAGED, RecordDamaged())) for thread_id, _ in unreadable
        )
        return claimed

    async def save(self, results: Sequence[PollResult], owner: str) -> int:
        held = await self._held_revisions(results, owner)
        valid = {result.thread.id: result for result in results if held.get(result.thread.id) == result.thread.revision}
        await self._save_changed([result for result in valid.values() if _changed(result)])
        await self._set_next(valid)
        await self._free(thread_id for thread_id in held if thread_id not in valid)
        return len(valid)

    async def _held_revisions(self, results: Sequence[PollResult], owner: str) -> dict[str, int]:
        """The revision of each thread whose poll is held. The threads that change are locked first, then the polls."""
        revisions: dict[str, int] = {}
        changed = [result.thread.id for result in results if _changed(result)]
        if changed:
            revisions = await self._pairs(_LOCKED_REVISIONS, changed)
            self._session.note_locked(revisions)
        ids = [result.thread.id for result in results]
        held = list((await self._session.execute(_HELD, {"ids": ids, "owner": owner})).scalars())
        # A revision rises only together with a change of the poll, which is locked by now.
        rest = [thread_id for thread_id in held if thread_id not in revisions]
        if rest:
            revisions |= await self._pairs(_REVISIONS, rest)
        return {thread_id: revisions[thread_id] for thread_id in held}

    async def _pairs(self, statement: Select[str, int], ids: list[str]) -> dict[str, int]:
        rows: Any = await self._session.execute(statement, {"ids": ids})
        return {row[0]: row[1] for row in rows}

    async def _save_changed(self, results: Sequence[PollResult]) -> None:
        if not results:
            return
        now = self._session.now
        await self._session.execute(SAVE_STATE, [saved_state(each.thread.id, each.state, now) for each in results])
        await self._notices.insert(
            (result.thread.id, notice)
            for result in results
            for notice in (*result.notices, *([CARD_CHANGED] if result.card_changed else []))
        )

    async def _set_next(self, results: dict[str, PollResult]) -> None:
        now = self._session.now
        rows = [
            {"thread": thread_id, "next_at": None if result.next_poll_in is None else now + result.next_poll_in}
            for thread_id, result in sorted(results.items())
        ]
        if rows:
            await self._session.execute(_NEXT, rows)

    async def _free(self, thread_ids: Iterable[str]) -> None:
        ids = sorted(thread_ids)
        if ids:
            await self._session.execute(_FREE, {"ids": ids})


def _changed(result: PollResult) -> bool:
    """Whether more than the next due time is new."""
    return result.state != result.thread.state or bool(result.notices) or result.card_changed
