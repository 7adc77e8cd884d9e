"""When each job is polled next and by whom, and the results of polls."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Double, Select, bindparam, select, update

from bot.domain.threads.thread import Thread, ThreadState, shows_another_state
from bot.errors import UnreadableRow
from bot.notices.job import RecordDamaged
from bot.notices.notice import CARD_CHANGED, CARD_PROGRESSED, NewNotice
from bot.store.claims import CLAIM, FREE, LIMIT, claim_of, due, read_each
from bot.store.notices import Notices
from bot.store.schema.rows import thread_from
from bot.store.schema.tables import polls, threads
from bot.store.session import Session
from bot.store.threads import SAVE_STATE, saved_state

NOTHING_KNOWN: Container[tuple[str, int]] = ()


@dataclass(frozen=True)
class ClaimedPoll:
    """A job to poll, with its thread at the time of the claim."""

    thread: Thread


@dataclass(frozen=True, slots=True)
class KnownPoll:
    """A job to poll whose thread still has the revision that its poller knows."""

    thread_id: str
    revision: int
    project: str
    job_id: str


@dataclass(frozen=True)
class PollResult:
    """The result of one poll: the thread at the time of the claim, its state now, and the resulting notices."""

    thread: Thread
    state: ThreadState
    notices: Sequence[NewNotice]
    card_changed: bool
    next_poll_in: float | None
    """Seconds until the next poll; None ends polling."""

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.thread.id

    @property
    def revision(self) -> int:
        """The thread's revision when it was claimed."""
        return self.thread.revision

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


_CANDIDATES = (
    select(threads.c.id, threads.c.revision, threads.c.project, threads.c.job_id, polls.c.claimed_by)
    .join(polls, polls.c.thread_id == threads.c.id)
    .where(due(polls))
    .order_by(polls.c.due_at)
    .limit(LIMIT)
    .with_for_update(of=polls, skip_locked=True)
)
_THREADS = select(threads).where(threads.c.id.in_(bindparam("ids", expanding=True))).order_by(threads.c.id)
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
        known: Container[tuple[str, int]] = NOTHING_KNOWN,
        most_read: int | None = None,
    ) -> Sequence[ClaimedPoll | KnownPoll]:
        """Claims polls that are due and unclaimed, the most overdue first. Threads that are `known`, by id and
        revision, are not read; of the others at most `most_read`, if given, are claimed.
        """
        session = self._session
        rows: Any = (await session.execute(_CANDIDATES, {"now": session.now, "limit": limit})).all()
        if not rows:
            return []
        found = [KnownPoll(*row[:-1]) for row in rows]
        already = {poll.thread_id: poll for poll in found if poll.job_id and (poll.thread_id, poll.revision) in known}
        others = [poll.thread_id for poll in found if poll.thread_id not in already]
        read, unreadable = await self._read(others[:most_read])
        due_polls: dict[str, ClaimedPoll | KnownPoll] = {**already, **{poll.thread.id: poll for poll in read}}
        await session.execute(_CLAIM, {"ids": list(due_polls), **claim_of(session, owner, lease)})
        session.takeovers += sum(row.claimed_by is not None for row in rows if row.id in due_polls)
        await session.end_unreadable(polls, unreadable)
        await self._notices.insert(
            (thread_id, NewNotice(RecordDamaged.KEY, RecordDamaged())) for thread_id, _ in unreadable
        )
        return [due_polls[poll.thread_id] for poll in found if poll.thread_id in due_polls]

    async def _read(self, ids: list[str]) -> tuple[list[ClaimedPoll], list[tuple[str, UnreadableRow]]]:
        rows = await self._session.rows(_THREADS, ids=ids) if ids else ()
        return read_each(((row[threads.c.id], row) for row in rows), lambda row: ClaimedPoll(thread_from(row)))

    async def thread(self, poll: KnownPoll) -> Thread | None:
        """Returns the thread of a claimed poll; None if its revision has changed, or if its row is unreadable."""
        read, _ = await self._read([poll.thread_id])
        return next((each.thread for each in read if each.thread.revision == poll.revision), None)

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
        await self._set_next(valid)
        await self._free(thread_id for thread_id in held if thread_id not in valid)
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
            (result.thread.id, notice) for result in results for notice in (*result.notices, *_card_notice(result))
        )

    async def _set_next(self, results: Mapping[str, PollResult | UnchangedPoll]) -> None:
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


def _card_notice(result: PollResult) -> Sequence[NewNotice]:
    """Returns how a poll changes the card: if the state is unchanged, only the agent's progress."""
    if not result.card_changed:
        return ()
    another = result.notices or shows_another_state(result.thread.state, result.state)
    return (CARD_CHANGED,) if another else (CARD_PROGRESSED,)
