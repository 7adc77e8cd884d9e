"""The threads, with the state of their jobs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Double, Integer, Select, Text, bindparam, func, insert, select, update

from bot.domain.threads.thread import Thread, ThreadOptions, ThreadOrigin, ThreadState
from bot.store.schema.rows import options_json, state_values, thread_from, thread_to_speak_in, thread_values
from bot.store.schema.tables import polls, threads
from bot.store.session import Part, adding

_ADD = adding(threads)
_ADD_POLL = insert(polls)
_BY_ID = select(threads).where(threads.c.id == bindparam("thread")).with_for_update(key_share=True)
_BY_CARD = (
    select(threads)
    .where(threads.c.channel_id == bindparam("channel"), threads.c.card_ts == bindparam("card"))
    .with_for_update(key_share=True)
)
_NEWEST = (
    select(threads)
    .where(threads.c.channel_id == bindparam("channel"), threads.c.ts == bindparam("root"))
    .order_by(threads.c.number.desc())
    .limit(1)
    .with_for_update(key_share=True)
)
_NEWEST_OF = (
    select(threads)
    .where(threads.c.channel_id == bindparam("channel"), threads.c.ts.is_not(None))
    .order_by(threads.c.ts.desc(), threads.c.number.desc())
    .limit(bindparam("most", type_=Integer))
)
_OF_PERSON = (
    select(threads)
    .where(threads.c.requester_id == bindparam("person"))
    .order_by(threads.c.created_at.desc())
    .limit(bindparam("most"))
    .offset(bindparam("skipped"))
)
_SET_CARD = (
    update(threads)
    .where(threads.c.id == bindparam("thread"))
    .values(card_ts=bindparam("card", type_=Text), ts=func.coalesce(threads.c.ts, bindparam("card", type_=Text)))
)
_SET_PROJECT = (
    update(threads)
    .where(threads.c.id == bindparam("thread"))
    .values(project=bindparam("name"), options=bindparam("settled"))
)
_SET_ORIGIN = update(threads).where(threads.c.id == bindparam("thread")).values(origin=bindparam("begun_with"))
_others = threads.alias("others")
_ATTACH = (
    update(threads)
    .where(threads.c.id == bindparam("thread"))
    .values(
        ts=threads.c.root_ts,
        number=select(func.coalesce(func.max(_others.c.number), -1) + 1)
        .where(_others.c.channel_id == threads.c.channel_id, _others.c.ts == threads.c.root_ts)
        .scalar_subquery(),
    )
    .returning(threads.c.ts, threads.c.number)
)
_DETACH = update(threads).where(threads.c.id == bindparam("thread")).values(ts=None)
SAVE_STATE = (
    update(threads)
    .where(threads.c.id == bindparam("thread"))
    .values(
        state=bindparam("state_now"),
        job_id=bindparam("job_now"),
        revision=threads.c.revision + 1,
        updated_at=bindparam("now", type_=Double),
    )
)
_POLL_AT = (
    update(polls).where(polls.c.thread_id == bindparam("thread")).values(due_at=bindparam("next_at", type_=Double))
)
_END_POLL = (
    update(polls)
    .where(polls.c.thread_id == bindparam("thread"))
    .values(due_at=None, claimed_by=None, claimed_until=None)
)


def saved_state(thread_id: str, state: ThreadState, now: float) -> dict[str, Any]:
    """Returns the parameters of SAVE_STATE."""
    values = state_values(state)
    return {"thread": thread_id, "state_now": values["state"], "job_now": values["job_id"], "now": now}


class Threads(Part):
    """The threads, with the state of their jobs."""

    async def add(self, thread: Thread) -> bool:
        """Records a new thread, which is not polled yet because it has no job; False if its id is known already."""
        session = self._session
        added = await session.execute(_ADD, thread_values(thread) | {"updated_at": session.now})
        if added.rowcount == 1:
            session.note_locked([thread.id])  # nobody else sees it before the commit
            await session.execute(_ADD_POLL, {"thread_id": thread.id})
        return added.rowcount == 1

    async def get(self, thread_id: str) -> Thread | None:
        """Returns the thread, locked until the end of the transaction."""
        return await self._locked(_BY_ID, thread=thread_id)

    async def find_newest(self, channel_id: str, ts: str) -> Thread | None:
        """Returns the thread of the newest job in the Slack thread that begins with this `ts`, locked until the end of
        the transaction.
        """
        return await self._locked(_NEWEST, channel=channel_id, root=ts)

    async def newest_of(self, channel_id: str, *, limit: int) -> Sequence[Thread]:
        """Returns the threads in a channel, newest first; not locked."""
        rows = await self._session.rows(_NEWEST_OF, channel=channel_id, most=limit)
        return [thread_to_speak_in(row) for row in rows]

    async def find_by_card(self, channel_id: str, card_ts: str) -> Thread | None:
        """Returns the thread whose card has this `ts`, locked until the end of the transaction."""
        return await self._locked(_BY_CARD, channel=channel_id, card=card_ts)

    async def set_project(self, thread_id: str, project: str, options: ThreadOptions) -> None:
        """Records which project a thread's job is for, and why."""
        values = {"thread": thread_id, "name": project, "settled": options_json(options)}
        await self._session.execute(_SET_PROJECT, values)

    async def set_origin(self, thread_id: str, origin: ThreadOrigin) -> None:
        """Records the first message of a job's Slack thread, once it is known."""
        await self._session.execute(_SET_ORIGIN, {"thread": thread_id, "begun_with": origin})

    async def attach(self, thread: Thread) -> Thread:
        """Gives a job its place in the Slack thread that it was asked for in, as the newest there."""
        await self.find_newest(thread.channel_id, thread.root_ts)  # others that attach a job wait here
        row = (await self._session.execute(_ATTACH, {"thread": thread.id})).one()
        return replace(thread, ts=row.ts, number=row.number)

    async def detach(self, thread_id: str) -> None:
        """Detaches a job that will never have a card: replies in the Slack thread no longer count for it."""
        await self._session.execute(_DETACH, {"thread": thread_id})

    async def of_person(self, person_id: str, *, offset: int, limit: int) -> Sequence[Thread]:
        """Returns the threads whose jobs somebody asked for, newest first; not locked."""
        rows = await self._session.rows(_OF_PERSON, person=person_id, most=limit, skipped=offset)
        return [thread_to_speak_in(row) for row in rows]

    async def save_state(self, thread_id: str, state: ThreadState, *, poll_in: float | None) -> None:
        """Saves the state, raises the thread's revision (so that the result of a poll in progress is dropped), and
        makes the poll due in this many seconds (None: never). A poller keeps its claim until the claim ends.
        """
        session = self._session
        await session.execute(SAVE_STATE, saved_state(thread_id, state, session.now))
        if poll_in is None:
            await session.execute(_END_POLL, {"thread": thread_id})
        else:
            await session.execute(_POLL_AT, {"thread": thread_id, "next_at": session.now + poll_in})

    async def set_card(self, thread_id: str, card_ts: str) -> None:
        """Records where the card was posted, which begins the Slack thread if nothing else does. From now on the
        thread's requests can be sent.
        """
        await self._session.execute(_SET_CARD, {"thread": thread_id, "card": card_ts})

    async def _locked(self, statement: Select[Any], **values: object) -> Thread | None:
        rows = await self._session.rows(statement, **values)
        if not rows:
            return None
        thread = thread_from(rows[0])
        self._session.note_locked([thread.id])
        return thread
