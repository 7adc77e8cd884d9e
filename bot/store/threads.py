"""The threads, with the state of their jobs; when each job is polled next and by whom, and the results of polls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Double, Integer, Select, Text, bindparam, func, insert, select, update

from bot.domain.threads.thread import Thread, ThreadOptions, ThreadOrigin, ThreadState, shows_another_state
from bot.errors import UnreadableRow
from bot.notices.job import RecordDamaged
from bot.notices.notice import CARD_CHANGED, CARD_PROGRESSED, NewNotice
from bot.queue.claims import CLAIM, FREE, first_due
from bot.queue.transaction import adding
from bot.store.claims import read_each
from bot.store.notices import Notices
from bot.store.pull_requests import follow
from bot.store.schema.rows import (
    PULL_REQUEST,
    json_of,
    state_values,
    thread_from,
    thread_to_speak_in,
    thread_values,
)
from bot.store.schema.tables import polls, pull_requests, threads
from bot.store.session import Part, Session

_ADD, _ADD_POLL = adding(threads), insert(polls)


def _locked(*conditions: ColumnElement[bool]) -> Select[Any]:
    return select(threads).where(*conditions).with_for_update(key_share=True)


_BY_ID = _locked(threads.c.id == bindparam("thread"))
_NEWEST_IN = (
    _locked(threads.c.channel_id == bindparam("channel"), threads.c.ts == bindparam("slack_thread"))
    .order_by(threads.c.number.desc())
    .limit(1)
)
_BY_CARD = _locked(threads.c.channel_id == bindparam("channel"), threads.c.card_ts == bindparam("card"))
_NEWEST_OF = (
    select(threads)
    .where(threads.c.channel_id == bindparam("channel"), threads.c.ts.is_not(None))
    .order_by(threads.c.ts.desc(), threads.c.number.desc())
    .limit(bindparam("most", type_=Integer))
)
_UPDATE = update(threads).where(threads.c.id == bindparam("thread"))
_SAVE_STATE = _UPDATE.values(
    state=bindparam("state_now"),
    job_id=bindparam("job_now"),
    revision=threads.c.revision + 1,
    updated_at=bindparam("now", type_=Double),
)
_END_POLL = update(polls).where(polls.c.thread_id == bindparam("thread")).values(due_at=None, **FREE)
_POLL_AT = update(polls).where(polls.c.thread_id == bindparam("thread")).values(due_at=bindparam("next_at"))
_SET_CARD = _UPDATE.values(card_ts=bindparam("card"), ts=func.coalesce(threads.c.ts, bindparam("card")))


def _saved_state(thread_id: str, state: ThreadState, now: float) -> dict[str, Any]:
    """Returns the parameters of _SAVE_STATE."""
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
        return await self._locked(_NEWEST_IN, channel=channel_id, slack_thread=ts)

    async def newest_of(self, channel_id: str, *, limit: int) -> Sequence[Thread]:
        """Returns the threads in a channel, newest first; not locked."""
        rows = await self._session.rows(_NEWEST_OF, channel=channel_id, most=limit)
        return [thread_to_speak_in(row) for row in rows]

    async def find_by_card(self, channel_id: str, card_ts: str) -> Thread | None:
        """Returns the thread whose card has this `ts`, locked until the end of the transaction."""
        return await self._locked(_BY_CARD, channel=channel_id, card=card_ts)

    async def set_project(self, thread_id: str, project: str, options: ThreadOptions) -> None:
        """Records which project a thread's job is for, and why."""
        values = {"thread": thread_id, "project": project, "options": json_of(options)}
        await self._session.execute(_UPDATE, values)

    async def set_origin(self, thread_id: str, origin: ThreadOrigin) -> None:
        """Records the first message of a job's Slack thread, once it is known."""
        await self._session.execute(_UPDATE, {"thread": thread_id, "origin": origin})

    async def attach(self, thread: Thread) -> Thread:
        """Gives a job its place in the Slack thread that it was asked for in, as the newest there."""
        await self.find_newest(thread.channel_id, thread.root_ts)  # others that attach a job wait here
        others = threads.alias("others")
        number = select(func.coalesce(func.max(others.c.number), -1) + 1).where(
            others.c.channel_id == threads.c.channel_id, others.c.ts == threads.c.root_ts
        )
        attached = _UPDATE.values(ts=threads.c.root_ts, number=number.scalar_subquery())
        returning = attached.returning(threads.c.ts, threads.c.number)
        row = (await self._session.execute(returning, {"thread": thread.id})).one()
        return replace(thread, ts=row.ts, number=row.number)

    async def detach(self, thread_id: str) -> None:
        """Detaches a job that will never have a card: replies in the Slack thread no longer count for it."""
        await self._session.execute(_UPDATE, {"thread": thread_id, "ts": None})

    async def of_person(self, person_id: str, *, offset: int, limit: int) -> Sequence[Thread]:
        """Returns the threads whose jobs somebody asked for, newest first; not locked."""
        of_person = (
            select(threads, PULL_REQUEST)
            .outerjoin(pull_requests, pull_requests.c.thread_id == threads.c.id)
            .where(threads.c.requester_id == person_id)
            .order_by(threads.c.created_at.desc())
        )
        rows = await self._session.rows(of_person.limit(limit).offset(offset))
        return [thread_to_speak_in(row) for row in rows]

    async def save_state(self, thread_id: str, state: ThreadState, *, poll_in: float | None) -> None:
        """Saves the state, raises the thread's revision (so that the result of a poll in progress is dropped), and
        makes the poll due in this many seconds (None: never). A poller keeps its claim until the claim ends.
        """
        session = self._session
        await session.execute(_SAVE_STATE, _saved_state(thread_id, state, session.now))
        if poll_in is None:
            await session.execute(_END_POLL, {"thread": thread_id})
        else:
            await session.execute(_POLL_AT, {"thread": thread_id, "next_at": session.now + poll_in})
        if state.job is not None and state.job.pr_link:
            await follow(session, [(thread_id, state.job.pr_link)])

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


@dataclass(frozen=True, slots=True)
class ClaimedPoll:
    """A job to poll. `seen` is what is remembered of its last poll; the thread is read only if that is not enough."""

    thread_id: str
    revision: int
    channel_id: str
    project: str
    job_id: str | None
    seen: str | None
    thread: Thread | None = None


@dataclass(frozen=True)
class PollResult:
    """The result of one poll: the thread at the time of the claim, its state now, and the resulting notices."""

    thread: Thread
    state: ThreadState
    notices: Sequence[NewNotice]
    card_changed: bool
    next_poll_in: float | None
    """Seconds until the next poll; None ends polling."""
    seen: str | None = None
    """What to remember."""

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.thread.id

    @property
    def revision(self) -> int:
        """The thread's revision when it was claimed."""
        return self.thread.revision

    @property
    def new_link(self) -> str | None:
        """The job's pull request, if it had none or another one before."""
        before = self.thread.state.job.pr_link if self.thread.state.job else None
        link = self.state.job.pr_link if self.state.job else None
        return None if link == before else link

    @property
    def changes(self) -> bool:
        """Whether anything besides the next due time is new."""
        return self.card_changed or bool(self.notices) or self.state != self.thread.state


@dataclass(frozen=True, slots=True)
class UnchangedPoll:
    """The result of a poll without news: only the next due time is new."""

    thread_id: str
    revision: int
    next_poll_in: float | None
    seen: str | None = None


_IDS = bindparam("ids", type_=Text(), expanding=True)
"""Ids that the database has told, which need no check."""
_POLL = (threads.c.id, threads.c.revision, threads.c.channel_id, threads.c.project, threads.c.job_id, polls.c.seen)
_CANDIDATES = first_due(
    select(*_POLL, polls.c.claimed_by).join(polls, polls.c.thread_id == threads.c.id), polls, of=polls
)
_THREADS = select(threads).where(threads.c.id.in_(_IDS)).order_by(threads.c.id)
_CLAIM = update(polls).where(polls.c.thread_id.in_(_IDS)).values(**CLAIM)
_REVISIONS = select(threads.c.id, threads.c.revision).where(threads.c.id.in_(_IDS)).order_by(threads.c.id)
_LOCKED_REVISIONS = _REVISIONS.with_for_update(key_share=True)
_HELD = (
    select(polls.c.thread_id)
    .where(polls.c.thread_id.in_(_IDS), polls.c.claimed_by == bindparam("owner"))
    .order_by(polls.c.thread_id)
    .with_for_update()
)
_NEXT = (
    update(polls)
    .where(polls.c.thread_id == bindparam("thread", type_=Text()))
    .values(due_at=bindparam("next_at", type_=Double), seen=bindparam("seen_now"), **FREE)
)
_FREE = update(polls).where(polls.c.thread_id.in_(_IDS)).values(**FREE)


class Polls:
    """When each job is polled next, and by whom."""

    def __init__(self, session: Session, notices: Notices) -> None:
        self._session = session
        self._notices = notices

    async def claim(
        self,
        owner: str,
        *,
        lease: float,
        limit: int,
        known: Callable[[ClaimedPoll], bool] = lambda _: False,
        most_read: int | None = None,
    ) -> Sequence[ClaimedPoll]:
        """Claims polls that are due and unclaimed, the most overdue first. Threads of which enough is `known` are not
        read; of the others, at most `most_read`, if given, are claimed.
        """
        session = self._session
        rows: Any = (await session.execute(_CANDIDATES, {"now": session.now, "limit": limit})).all()
        if not rows:
            return []
        found = {row[0]: ClaimedPoll(*row[:-1]) for row in rows}
        claimed = {thread_id: poll for thread_id, poll in found.items() if poll.job_id and known(poll)}
        read, unreadable = await self._read([thread_id for thread_id in found if thread_id not in claimed][:most_read])
        claimed |= {thread.id: _with_thread(found[thread.id], thread) for thread in read}
        await session.execute(_CLAIM, {"ids": list(claimed), "owner": owner, "lease_end": session.now + lease})
        session.takeovers += sum(row.claimed_by is not None for row in rows if row.id in claimed)
        await session.end_unreadable(polls, unreadable)
        await self._notices.insert(
            (thread_id, NewNotice(RecordDamaged.KEY, RecordDamaged())) for thread_id, _ in unreadable
        )
        return [claimed[thread_id] for thread_id in found if thread_id in claimed]

    async def _read(self, ids: list[str]) -> tuple[list[Thread], list[tuple[str, UnreadableRow]]]:
        rows = await self._session.rows(_THREADS, ids=ids) if ids else ()
        return read_each(((row[threads.c.id], row) for row in rows), thread_from)

    async def thread(self, poll: ClaimedPoll) -> Thread | None:
        """Returns the thread of a claimed poll; None if its revision has changed, or if its row is unreadable."""
        read, _ = await self._read([poll.thread_id])
        return next((thread for thread in read if thread.revision == poll.revision), None)

    async def save(self, results: Sequence[PollResult | UnchangedPoll], owner: str) -> int:
        """Saves the results of polls whose claim `owner` still holds and whose thread still has the revision it was
        claimed with: the state, the notices, the card if it changed, the next due time. Frees the claims. Other results
        are dropped; a claim that `owner` still holds is freed, and the poll keeps the due time that the change of
        the thread set. Returns how many were saved. An unchanged one costs one row update.
        """
        changed = [result for result in results if isinstance(result, PollResult) and result.changes]
        held = await self._held_revisions(results, changed, owner)
        valid = {result.thread_id: result for result in results if held.get(result.thread_id) == result.revision}
        await self._save_changed([result for result in changed if result.thread_id in valid])
        if valid:
            await self._session.execute(_NEXT, [self._next(result) for _, result in sorted(valid.items())])
        lost = sorted(held.keys() - valid.keys())
        if lost:
            await self._session.execute(_FREE, {"ids": lost})
        return len(valid)

    async def _held_revisions(
        self, results: Sequence[PollResult | UnchangedPoll], changed: Sequence[PollResult], owner: str
    ) -> dict[str, int]:
        """Returns the revision of each thread whose poll is held. Locks the threads that change, then the polls."""
        revisions: dict[str, int] = {}
        if changed:
            revisions = await self._pairs(_LOCKED_REVISIONS, [result.thread_id for result in changed])
            self._session.note_locked(revisions)
        ids = [result.thread_id for result in results]
        held = (await self._session.execute(_HELD, {"ids": ids, "owner": owner})).scalars().all()
        # A revision rises only together with a change of the poll, which is locked by now.
        rest = [thread_id for thread_id in held if thread_id not in revisions]
        if rest:
            revisions |= await self._pairs(_REVISIONS, rest)
        return {thread_id: revisions[thread_id] for thread_id in held}

    async def _pairs(self, statement: Select[str, int], ids: list[str]) -> dict[str, int]:
        rows: Any = (await self._session.execute(statement, {"ids": ids})).all()
        return dict(rows)

    async def _save_changed(self, results: Sequence[PollResult]) -> None:
        if not results:
            return
        now = self._session.now
        await self._session.execute(_SAVE_STATE, [_saved_state(each.thread.id, each.state, now) for each in results])
        await follow(self._session, ((each.thread.id, link) for each in results if (link := each.new_link)))
        await self._notices.insert(
            (result.thread.id, notice) for result in results for notice in (*result.notices, *_card_notice(result))
        )

    def _next(self, result: PollResult | UnchangedPoll) -> dict[str, Any]:
        due_at = None if result.next_poll_in is None else self._session.now + result.next_poll_in
        return {"thread": result.thread_id, "next_at": due_at, "seen_now": result.seen}


def _with_thread(poll: ClaimedPoll, thread: Thread) -> ClaimedPoll:
    job_id = None if thread.state.job is None else thread.state.job.id
    return replace(poll, revision=thread.revision, project=thread.project, job_id=job_id, thread=thread)


def _card_notice(result: PollResult) -> Sequence[NewNotice]:
    """Returns how a poll changes the card: if the state is unchanged, only the agent's progress."""
    if not result.card_changed:
        return ()
    another = result.notices or shows_another_state(result.thread.state, result.state)
    return (CARD_CHANGED,) if another else (CARD_PROGRESSED,)
