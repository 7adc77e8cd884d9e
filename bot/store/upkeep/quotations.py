"""Deletes what other people's requests and threads contain of somebody: quoted text, and ids.

Quotations do not record who wrote what, so those of all finished requests are deleted. Each pass goes by ids, in steps.
"""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Select, bindparam, delete, or_, select, update

from bot.domain.requests.request import RequestState
from bot.domain.threads.thread import ThreadState
from bot.errors import UnreadableRow
from bot.store.schema.rows import state_values, thread_from
from bot.store.schema.tables import notices, requests, threads
from bot.store.session import Part


@dataclass(frozen=True)
class Step:
    """One step of a pass through a table: the last id, how many rows it changed, and how many it had to skip."""

    last: str
    changed: int
    left: int


_OVER = requests.c.state.in_((RequestState.ACCEPTED, RequestState.REJECTED, RequestState.WITHDRAWN))
_QUOTES = or_(requests.c.context.is_not(None), requests.c.fetched.is_not(None), requests.c.attachments != "")
_AMONG: Any = bindparam("ids", expanding=True)
_CLEAR = (
    update(requests).where(requests.c.id.in_(_AMONG), _OVER, _QUOTES).values(context=None, fetched=None, attachments="")
)
_UNFINISHED = select(requests.c.id).where(requests.c.id.in_(_AMONG), ~_OVER, _QUOTES)


def _next(column: Any, *also: Any) -> Select[Any]:
    return select(column, *also).where(column > bindparam("after")).order_by(column).limit(bindparam("most"))


_REQUESTS = _next(requests.c.id)
_THREADS = _next(threads.c.id, threads.c.state)
_NOTICES = _next(notices.c.key, notices.c.id, notices.c.message, notices.c.due_at)
_UNDELIVERED = '"post_not_delivered"'
_DELETE_NOTICES = delete(notices).where(notices.c.id.in_(_AMONG))
_THREAD = select(threads).where(threads.c.id == bindparam("thread"))
_SET_STATE = (
    update(threads)
    .where(threads.c.id == bindparam("thread"))
    .values(state=bindparam("state_now"), revision=threads.c.revision + 1)
)


class Quotations(Part):
    """Deletes what other people's requests and threads contain of somebody."""

    async def forget_quoted(self, *, after: str, limit: int) -> Step | None:
        """Deletes the context of the next `limit` requests after an id, except of unfinished ones. None if there are no
        more.
        """
        ids = [row[requests.c.id] for row in await self._session.rows(_REQUESTS, after=after, most=limit)]
        if not ids:
            return None
        cleared = (await self._session.execute(_CLEAR, {"ids": ids})).rowcount
        return Step(ids[-1], cleared, len(await self._session.rows(_UNFINISHED, ids=ids)))

    async def forget_repeated(self, *, after: str, limit: int) -> Step | None:
        """The same, by key, for notices about posts that could not be delivered: they may repeat another person's
        words.
        """
        rows = await self._session.rows(_NOTICES, after=after, most=limit)
        if not rows:
            return None
        found = [row for row in rows if _UNDELIVERED in row[notices.c.message]]
        over = [row[notices.c.id] for row in found if row[notices.c.due_at] is None]
        if over:
            await self._session.execute(_DELETE_NOTICES, {"ids": over})
        return Step(rows[-1][notices.c.key], len(over), len(found) - len(over))

    async def forget_taking_part(self, person_id: str, *, after: str, limit: int) -> Step | None:
        """The same for somebody's part in threads, except as who muted a job or stopped work that continues."""
        rows = await self._session.rows(_THREADS, after=after, most=limit)
        if not rows:
            return None
        named = [row[threads.c.id] for row in rows if f'"{person_id}"' in row[threads.c.state]]
        changed = sum([await self._leave_out(thread_id, person_id) for thread_id in named])
        return Step(rows[-1][threads.c.id], changed, len(named) - changed)

    async def _leave_out(self, thread_id: str, person_id: str) -> bool:
        """Returns whether the thread's state no longer names them."""
        await self._session.lock_thread(thread_id)
        for row in await self._session.rows(_THREAD, thread=thread_id):
            try:
                state = without(thread_from(row).state, person_id)
            except UnreadableRow:
                return False
            values = state_values(state)["state"]
            await self._session.execute(_SET_STATE, {"thread": thread_id, "state_now": values})
            return f'"{person_id}"' not in values
        return True


def without(state: ThreadState, person_id: str) -> ThreadState:
    """Returns a job's state without a person, except as who muted it or stopped its work, if that still matters."""
    at_work, people = state.job is not None and not state.job.ended, state.people
    unexplained = tuple(each for each in state.announcements.unexplained if each.message.request.person_id != person_id)
    people = replace(
        people,
        participants=tuple(each for each in people.participants if each != person_id),
        let_through=tuple(each for each in people.let_through if each != person_id),
        asker_id="" if people.asker_id == person_id else people.asker_id,
        stopped_by="" if people.stopped_by == person_id and not at_work else people.stopped_by,
    )
    return replace(state, people=people, announcements=replace(state.announcements, unexplained=unexplained))
