"""Deletes old, finished data, and the data of people who want to be forgotten, also what other people's requests and
threads contain of them: quoted text, and ids.

Quotations do not record who wrote what, so those of all finished requests are deleted. Each pass goes by ids, in steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from enum import Enum
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, Table, bindparam, delete, exists, or_, select, true, update

from bot.domain.requests.request import RequestKind, RequestState
from bot.domain.threads.thread import ThreadState, Work
from bot.errors import UnreadableRow
from bot.store.people import home_changed
from bot.store.schema.rows import state_json, thread_from, thread_to_speak_in
from bot.store.schema.tables import (
    HELD,
    audit,
    channel_ids,
    counted_requests,
    drafts,
    early_replies,
    homes,
    message_versions,
    notices,
    polls,
    preferences,
    pull_requests,
    requests,
    slack_calls,
    stops_seen,
    threads,
)
from bot.store.session import Part


@dataclass(frozen=True)
class Deleted:
    """How much was deleted; falsy if nothing was."""

    jobs: int = 0
    requests: int = 0
    notices: int = 0
    early_replies: int = 0
    quotations: int = 0
    """Finished requests of other people whose context was deleted."""
    others: int = 0
    """Entries of the audit trail, drafts, preferences, Homes, counted requests, versions of messages."""

    def __add__(self, other: "Deleted") -> "Deleted":
        return Deleted(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    def __bool__(self) -> bool:
        return any(astuple(self))


@dataclass(frozen=True)
class Step:
    """One step of a pass through a table: the last id, how many rows it changed, and how many it had to skip."""

    last: str
    changed: int
    left: int


class OldRows(Enum):
    """Kinds of rows that are deleted once they are old. Each has a time from which its age counts."""

    AUDIT = "audit"
    """Entries of the audit trail, since they were made."""
    COUNTED = "counted"
    """Requests counted towards somebody's limit, since then."""
    DRAFTS = "drafts"
    """Drafts, since they last changed."""
    HOMES = "homes"
    """App Homes, since somebody last opened them; opening one creates it again."""
    MESSAGE_VERSIONS = "message_versions"
    """Versions of messages, since they were first seen."""
    SLACK_CALLS = "slack_calls"
    """Calls to Slack in channels, since they no longer count."""


_OLD: Mapping[OldRows, Column[Any]] = {
    OldRows.AUDIT: audit.c.at,
    OldRows.COUNTED: counted_requests.c.at,
    OldRows.DRAFTS: drafts.c.updated_at,
    OldRows.HOMES: homes.c.opened_at,
    OldRows.MESSAGE_VERSIONS: message_versions.c.noted_at,
    OldRows.SLACK_CALLS: slack_calls.c.tat,
}
_OF_PERSON = (drafts, preferences, homes, counted_requests, message_versions, stops_seen)
"""Few rows per person: their last requests within an hour or two."""
# A job that waits for the choice of its project is deleted with its thread.
_WAITS = (HELD, requests.c.kind != RequestKind.START)


def _oldest(before: float, limit: int, time: Column[Any], *keys: ColumnElement[Any]) -> Select[Any]:
    return select(*keys).where(time < before).order_by(time).limit(limit).with_for_update(skip_locked=True)


def _nothing_open(before: float, kept_by: Sequence[Table]) -> list[ColumnElement[bool]]:
    """Returns the conditions that a thread has nothing due in these tables, and no open request. A follow-up without a
    job waits for a person to send the start again. After this time, nobody will.
    """
    may_be_sent = or_(
        requests.c.kind == RequestKind.START, threads.c.job_id.is_not(None), requests.c.recorded_at >= before
    )
    return [
        ~exists().where(table.c.thread_id == threads.c.id, table.c.due_at.is_not(None), condition)
        for table, condition in (*((table, true()) for table in kept_by), (requests, may_be_sent))
    ]


_OVER = requests.c.state.in_((RequestState.ACCEPTED, RequestState.REJECTED, RequestState.WITHDRAWN))
_QUOTES = or_(requests.c.context.is_not(None), requests.c.fetched.is_not(None), requests.c.attachments != "")
_UNDELIVERED = '"post_not_delivered"'


def _next(after: str, limit: int, column: Column[Any], *also: Column[Any]) -> Select[Any]:
    return select(column, *also).where(column > after).order_by(column).limit(limit)


class Retention(Part):
    """Deletes data."""

    async def delete_finished(self, *, before: float, limit: int) -> int:
        """Deletes at most `limit` threads, with everything that belongs to them, that have not changed since `before`
        and have nothing open: no polling, no request, no notice. Returns how many.
        """
        finished = _oldest(before, limit, threads.c.updated_at, threads.c.id).where(
            *_nothing_open(before, (polls, pull_requests, notices))
        )
        # Their polls, requests and notices are deleted with them.
        return await self._delete(threads.c.id, await self._ids(finished))

    async def delete_texts(self, *, before: float, limit: int) -> int:
        """Deletes the texts of at most `limit` threads that have not changed since `before`, and that only their pull
        request keeps: requests, notices, and all of the job but its ids and link. Returns how many.
        """
        session, followed = (
            self._session,
            exists().where(pull_requests.c.thread_id == threads.c.id, pull_requests.c.due_at.is_not(None)),
        )
        old = _oldest(before, limit, threads.c.updated_at, *threads.c).where(
            threads.c.prompt != "", followed, *_nothing_open(before, (polls, notices))
        )
        rows = await session.rows(old)
        for row in rows:
            thread = thread_to_speak_in(row)
            kept = {
                "prompt": "",
                "state": state_json(without_texts(thread.state)),
                "revision": threads.c.revision + 1,
            }
            await session.execute(update(threads).where(threads.c.id == thread.id).values(kept))
            await session.execute(delete(requests).where(requests.c.thread_id == thread.id))
            await session.execute(delete(notices).where(notices.c.thread_id == thread.id))
        return len(rows)

    async def delete_old(self, kind: OldRows, *, before: float, limit: int) -> int:
        """Deletes at most `limit` rows of a kind from before a time, oldest first; returns how many."""
        time = _OLD[kind]
        keys = list(time.table.primary_key)
        old = _oldest(before, limit, time, *keys)
        if kind is OldRows.SLACK_CALLS:
            old = old.where(slack_calls.c.channel_id != "")
        rows = await self._session.rows(old)
        if rows:
            each = delete(time.table).where(*(key == bindparam(f"the_{key.name}") for key in keys))
            await self._session.execute(each, [{f"the_{name}": value for name, value in row.items()} for row in rows])
        return len(rows)

    async def delete_channel_ids(self, *, before: float, limit: int) -> int:
        """Deletes at most `limit` channel ids that were recorded before a time and that no job uses any more; returns
        how many. Those in use count as recorded now.
        """
        columns = channel_ids.c
        rows = await self._session.rows(
            _oldest(before, limit, columns.recorded_at, columns.channel_id, columns.known_as)
        )
        old = {row["channel_id"]: row["known_as"] for row in rows}
        needed = [each for each, known_as in old.items() if await self._has_job(known_as) or await self._has_job(each)]
        if needed:
            kept = update(channel_ids).where(columns.channel_id.in_(needed))
            await self._session.execute(kept.values(recorded_at=self._session.now))
        return await self._delete(columns.channel_id, [each for each in old if each not in needed])

    async def _has_job(self, channel_id: str) -> bool:
        there = select(threads.c.id).where(threads.c.channel_id == channel_id).order_by(threads.c.ts).limit(1)
        return bool(await self._session.rows(there))

    async def delete_held(self, *, before: float, limit: int) -> Sequence[tuple[str, str]]:
        """Deletes at most `limit` requests whose person was asked something before a time and never answered. Returns
        the thread, which is locked, and the person of each.
        """
        # They are locked after their threads, and may be answered until then.
        old = select(requests.c.id, requests.c.thread_id).where(requests.c.recorded_at < before, *_WAITS)
        rows = await self._session.rows(old.order_by(requests.c.recorded_at).limit(limit))
        for thread_id in sorted({row["thread_id"] for row in rows}):
            await self._session.lock_thread(thread_id)
        if not rows:
            return []
        still_held = delete(requests).where(requests.c.id.in_([row["id"] for row in rows]), *_WAITS)
        deleted = await self._session.execute(still_held.returning(requests.c.thread_id, requests.c.person_id))
        held = [(row.thread_id, row.person_id) for row in deleted]
        for person_id in sorted({person_id for _, person_id in held}):
            await home_changed(self._session, person_id)
        return held

    async def forget_person(self, person_id: str, *, limit: int) -> Deleted:
        """Deletes everything of a person, open or not: threads they began with all that belongs to them, and their
        requests and notices in other threads, audit entries, preferences and drafts; at most `limit` of each. Call it
        until nothing is deleted.
        """
        own = await self._some(threads.c.id, threads.c.requester_id, person_id, threads.c.created_at, limit)
        whole_threads = await self._delete_threads(own)
        requests_left = await self._some(requests.c.id, requests.c.person_id, person_id, requests.c.recorded_at, limit)
        notices_left = await self._some(notices.c.id, notices.c.person_id, person_id, notices.c.id, limit)
        entries = await self._some(audit.c.id, audit.c.person_id, person_id, audit.c.at, limit)
        return whole_threads + Deleted(
            requests=await self._delete(requests.c.id, requests_left),
            notices=await self._delete(notices.c.id, notices_left),
            early_replies=await self._delete_all(early_replies.c.person_id, person_id),
            others=await self._delete(audit.c.id, entries)
            + sum([await self._delete_all(table.c.person_id, person_id) for table in _OF_PERSON]),
        )

    async def forget_channel(self, channel_id: str, *, limit: int) -> Deleted:
        """Deletes everything of a channel, open or not: at most `limit` threads with all that belongs to them, as many
        audit entries, early replies and versions of messages. Call it until nothing is deleted.
        """
        thread_ids = await self._some(threads.c.id, threads.c.channel_id, channel_id, threads.c.ts, limit)
        drafted = await self._delete_drafts_at(channel_id, {f"thread/{thread_id}" for thread_id in thread_ids})
        whole_threads = await self._delete_threads(thread_ids)
        entries = await self._some(audit.c.id, audit.c.channel_id, channel_id, audit.c.at, limit)
        return whole_threads + Deleted(
            early_replies=await self._delete_all(early_replies.c.channel_id, channel_id),
            others=drafted
            + await self._delete(audit.c.id, entries)
            + await self._delete_all(message_versions.c.channel_id, channel_id),
        )

    async def forget_quoted(self, *, after: str, limit: int) -> Step | None:
        """Deletes the context of the next `limit` requests after an id, except of unfinished ones. None if there are no
        more.
        """
        ids = [row["id"] for row in await self._session.rows(_next(after, limit, requests.c.id))]
        if not ids:
            return None
        among = requests.c.id.in_(ids)
        cleared = await self._session.execute(
            update(requests).where(among, _OVER, _QUOTES).values(context=None, fetched=None, attachments="")
        )
        unfinished = await self._session.rows(select(requests.c.id).where(among, ~_OVER, _QUOTES))
        return Step(ids[-1], cleared.rowcount, len(unfinished))

    async def forget_repeated(self, *, after: str, limit: int) -> Step | None:
        """The same, by key, for notices about posts that could not be delivered: they may repeat another person's
        words.
        """
        columns = (notices.c.key, notices.c.id, notices.c.message, notices.c.due_at)
        rows = await self._session.rows(_next(after, limit, *columns))
        if not rows:
            return None
        found = [row for row in rows if _UNDELIVERED in row[notices.c.message]]
        over = [row[notices.c.id] for row in found if row[notices.c.due_at] is None]
        if over:
            await self._session.execute(delete(notices).where(notices.c.id.in_(over)))
        return Step(rows[-1][notices.c.key], len(over), len(found) - len(over))

    async def forget_taking_part(self, person_id: str, *, after: str, limit: int) -> Step | None:
        """The same for somebody's part in threads, except as who muted a job or stopped work that continues."""
        rows = await self._session.rows(_next(after, limit, threads.c.id, threads.c.state))
        if not rows:
            return None
        named = [row[threads.c.id] for row in rows if f'"{person_id}"' in row[threads.c.state]]
        changed = sum([await self._leave_out(thread_id, person_id) for thread_id in named])
        return Step(rows[-1][threads.c.id], changed, len(named) - changed)

    async def _leave_out(self, thread_id: str, person_id: str) -> bool:
        """Returns whether the thread's state no longer names them."""
        await self._session.lock_thread(thread_id)
        for row in await self._session.rows(select(threads).where(threads.c.id == thread_id)):
            try:
                state = without(thread_from(row).state, person_id)
            except UnreadableRow:
                return False
            values = state_json(state)
            await self._session.execute(
                update(threads).where(threads.c.id == thread_id).values(state=values, revision=threads.c.revision + 1)
            )
            return f'"{person_id}"' not in values
        return True

    async def _delete_drafts_at(self, channel_id: str, threads_there: set[str]) -> int:
        """Deletes drafts of modals that were opened in a channel."""
        # All of them: none is older than a day.
        found = select(drafts.c.person_id, drafts.c.place).where(drafts.c.updated_at >= 0.0)
        rows = await self._session.rows(found.order_by(drafts.c.updated_at))
        there = [
            {"whose": row["person_id"], "at": row["place"]}
            for row in rows
            if row["place"] in threads_there
            or row["place"] == f"job/{channel_id}"
            or row["place"].startswith(f"message/{channel_id}/")
        ]
        if there:
            one = (drafts.c.person_id == bindparam("whose"), drafts.c.place == bindparam("at"))
            await self._session.execute(delete(drafts).where(*one), there)
        return len(there)

    async def _some(
        self, key: Column[Any], of: Column[Any], whose: str, order: Column[Any], limit: int
    ) -> Sequence[Any]:
        """Selects and locks a limited number of rows of a person or a channel, in the order of their index. Without
        this order, PostgreSQL may search from the table's beginning, past all the rows that are already deleted.
        """
        return await self._ids(select(key).where(of == whose).order_by(order).limit(limit).with_for_update())

    async def _delete_all(self, of: Column[Any], whose: str) -> int:
        return (await self._session.execute(delete(of.table).where(of == whose))).rowcount

    async def _delete_threads(self, ids: Sequence[Any]) -> Deleted:
        # Their notices and requests would be deleted with them automatically, but not counted.
        return Deleted(
            notices=await self._delete(notices.c.thread_id, ids),
            requests=await self._delete(requests.c.thread_id, ids),
            jobs=await self._delete(threads.c.id, ids),
        )

    async def _ids(self, some: Select[Any]) -> Sequence[Any]:
        return (await self._session.execute(some)).scalars().all()

    async def _delete(self, key: Column[Any], ids: Sequence[Any]) -> int:
        if not ids:
            return 0
        return (await self._session.execute(delete(key.table).where(key.in_(ids)))).rowcount


def without_texts(state: ThreadState) -> ThreadState:
    """Returns a job's state without what people and agents wrote; its rounds go on, so that no notice's key repeats."""
    return replace(
        state,
        work=Work(),
        failure=replace(state.failure, problem_text=""),
        announcements=replace(state.announcements, unexplained=()),
    )


def without(state: ThreadState, person_id: str) -> ThreadState:
    """Returns a job's state without a person, except as who muted it or stopped its work, if that still matters."""
    at_work, people = state.job is not None and not state.job.ended, state.people
    unexplained = tuple(each for each in state.announcements.unexplained if each.message.request.person_id != person_id)
    people = replace(
        people,
        participants=tuple(each for each in people.participants if each != person_id),
        asker_id="" if people.asker_id == person_id else people.asker_id,
        stopped_by="" if people.stopped_by == person_id and not at_work else people.stopped_by,
    )
    planning = state.planning
    if planning.proposal_end_by == person_id:
        planning = replace(planning, proposal_end_by="")
    announcements = replace(state.announcements, unexplained=unexplained)
    return replace(state, people=people, planning=planning, announcements=announcements)
