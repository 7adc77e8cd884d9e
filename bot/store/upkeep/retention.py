"""Deletes old, finished data, and the data of people who want to be forgotten."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import Enum
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Delete,
    Double,
    Select,
    bindparam,
    delete,
    exists,
    literal_column,
    or_,
    select,
    true,
    update,
)

from bot.domain.requests.request import RequestKind, RequestState
from bot.store.people import home_changed
from bot.store.schema.gap_tables import stops_seen
from bot.store.schema.people_tables import audit, counted_requests, drafts, homes, preferences
from bot.store.schema.tables import (
    channel_ids,
    early_replies,
    message_versions,
    notices,
    polls,
    requests,
    slack_calls,
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
class HeldRequest:
    """A request whose person was asked something."""

    thread_id: str
    person_id: str


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


_BEFORE = bindparam("before", type_=Double)
_OPEN = [
    exists().where(table.c.thread_id == threads.c.id, table.c.due_at.is_not(None), condition)
    for table, condition in (
        (polls, true()),
        (notices, true()),
        # A follow-up without a job waits for a person to send the start again. After this time, nobody will.
        (
            requests,
            or_(
                requests.c.kind == RequestKind.START,
                threads.c.job_id.is_not(None),
                requests.c.recorded_at >= _BEFORE,
            ),
        ),
    )
]
_FINISHED = (
    select(threads.c.id)
    .where(threads.c.updated_at < _BEFORE, *(~is_open for is_open in _OPEN))
    .order_by(threads.c.updated_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_DELETE_THREADS = delete(threads).where(threads.c.id.in_(_IDS))
_DELETE_REQUESTS = delete(requests).where(requests.c.id.in_(_IDS))
_DELETE_NOTICES = delete(notices).where(notices.c.id.in_(_IDS))
# They would be deleted with the threads automatically, but not counted.
_DELETE_REQUESTS_OF_THREADS = delete(requests).where(requests.c.thread_id.in_(_IDS))
_DELETE_NOTICES_OF_THREADS = delete(notices).where(notices.c.thread_id.in_(_IDS))


def _some_of(key: Column[Any], whose: Column[Any], order: Column[Any]) -> Select[Any]:
    """Selects and locks a limited number of rows of a person or a channel, in the order of their index.

    Without this order, PostgreSQL may search from the table's beginning, past all the rows that are already deleted.
    """
    some = select(key).where(whose == bindparam("whose")).order_by(order)
    return some.limit(bindparam("limit")).with_for_update()


_THREADS_OF_PERSON = _some_of(threads.c.id, threads.c.requester_id, threads.c.created_at)
_THREADS_OF_CHANNEL = _some_of(threads.c.id, threads.c.channel_id, threads.c.ts)
_REQUESTS_OF_PERSON = _some_of(requests.c.id, requests.c.person_id, requests.c.recorded_at)
_NOTICES_TO_PERSON = _some_of(notices.c.id, notices.c.person_id, notices.c.id)
_DELETE_EARLY_OF_PERSON = delete(early_replies).where(early_replies.c.person_id == bindparam("whose"))
_AUDIT_OF_PERSON = _some_of(audit.c.id, audit.c.person_id, audit.c.at)
_AUDIT_OF_CHANNEL = _some_of(audit.c.id, audit.c.channel_id, audit.c.at)
_DELETE_AUDIT = delete(audit).where(audit.c.id.in_(_IDS))
_OWN = tuple(
    delete(table).where(table.c.person_id == bindparam("whose"))
    for table in (drafts, preferences, homes, counted_requests, message_versions, stops_seen)
)
"""Few rows per person: their last requests within an hour or two."""


def _oldest(time: Column[Any], *keys: Column[Any], among: ColumnElement[bool] | None = None) -> Select[Any]:
    some = select(*keys).where(time < _BEFORE, true() if among is None else among).order_by(time)
    return some.limit(bindparam("limit")).with_for_update(skip_locked=True)


_OLD: Mapping[OldRows, Select[Any]] = {
    OldRows.AUDIT: _oldest(audit.c.at, audit.c.id),
    OldRows.COUNTED: _oldest(counted_requests.c.at, counted_requests.c.request_id),
    OldRows.DRAFTS: _oldest(drafts.c.updated_at, drafts.c.person_id, drafts.c.place),
    OldRows.HOMES: _oldest(homes.c.opened_at, homes.c.person_id),
    OldRows.MESSAGE_VERSIONS: _oldest(
        message_versions.c.noted_at, message_versions.c.channel_id, message_versions.c.message_ts
    ),
    OldRows.SLACK_CALLS: _oldest(
        slack_calls.c.tat, slack_calls.c.method, slack_calls.c.channel_id, among=slack_calls.c.channel_id != ""
    ),
}


def _delete_each(*keys: Column[Any]) -> Delete:
    """Deletes one row by its keys; the parameters are named after them, with the prefix `the_`."""
    return delete(keys[0].table).where(*(key == bindparam(f"the_{key.name}") for key in keys))


_DELETE_OLD = {kind: _delete_each(*old.selected_columns) for kind, old in _OLD.items()}

_OLD_CHANNEL_IDS = _oldest(channel_ids.c.recorded_at, channel_ids.c.channel_id, channel_ids.c.known_as)
_JOB_IN_CHANNEL = (
    select(threads.c.id).where(threads.c.channel_id == bindparam("channel")).order_by(threads.c.ts).limit(1)
)
_KEEP_CHANNEL_IDS = (
    update(channel_ids).where(channel_ids.c.channel_id.in_(_IDS)).values(recorded_at=bindparam("now", type_=Double))
)
_DELETE_CHANNEL_IDS = delete(channel_ids).where(channel_ids.c.channel_id.in_(_IDS))
_DELETE_VERSIONS_OF_CHANNEL = delete(message_versions).where(message_versions.c.channel_id == bindparam("whose"))
# A job that waits for the choice of its project is deleted with its thread.
_WAITS = (
    requests.c.state == literal_column(f"'{RequestState.AWAITING_PERSON}'"),
    requests.c.kind != RequestKind.START,
)
# They are locked after their threads, and may be answered until then.
_OLD_HELD = (
    select(requests.c.id, requests.c.thread_id)
    .where(requests.c.recorded_at < _BEFORE, *_WAITS)
    .order_by(requests.c.recorded_at)
    .limit(bindparam("limit"))
)
_DELETE_HELD = (
    delete(requests).where(requests.c.id.in_(_IDS), *_WAITS).returning(requests.c.thread_id, requests.c.person_id)
)
_DELETE_EARLY_OF_CHANNEL = delete(early_replies).where(early_replies.c.channel_id == bindparam("whose"))


_DRAFTS = select(drafts.c.person_id, drafts.c.place).where(drafts.c.updated_at >= 0.0).order_by(drafts.c.updated_at)
"""All of them: none is older than a day."""
_DELETE_DRAFT_AT = delete(drafts).where(drafts.c.person_id == bindparam("whose"), drafts.c.place == bindparam("at"))


class Retention(Part):
    """Deletes data."""

    async def delete_finished(self, *, before: float, limit: int) -> int:
        """Deletes at most `limit` threads, with everything that belongs to them, that have not changed since `before`
        and have nothing open: no polling, no request, no notice. Returns how many.
        """
        ids = await self._ids(_FINISHED, before=before, limit=limit)
        # Their polls, requests and notices are deleted with them.
        return await self._delete(_DELETE_THREADS, ids)

    async def delete_old(self, kind: OldRows, *, before: float, limit: int) -> int:
        """Deletes at most `limit` rows of a kind from before a time, oldest first; returns how many."""
        rows = await self._session.rows(_OLD[kind], before=before, limit=limit)
        if rows:
            values = [{f"the_{name}": value for name, value in row.items()} for row in rows]
            await self._session.execute(_DELETE_OLD[kind], values)
        return len(rows)

    async def delete_channel_ids(self, *, before: float, limit: int) -> int:
        """Deletes at most `limit` channel ids that were recorded before a time and that no job uses any more; returns
        how many. Those in use count as recorded now.
        """
        rows = await self._session.rows(_OLD_CHANNEL_IDS, before=before, limit=limit)
        old = {row["channel_id"]: row["known_as"] for row in rows}
        needed = [each for each, known_as in old.items() if await self._has_job(known_as) or await self._has_job(each)]
        if needed:
            await self._session.execute(_KEEP_CHANNEL_IDS, {"ids": needed, "now": self._session.now})
        return await self._delete(_DELETE_CHANNEL_IDS, [each for each in old if each not in needed])

    async def _has_job(self, channel_id: str) -> bool:
        return bool(await self._session.rows(_JOB_IN_CHANNEL, channel=channel_id))

    async def delete_held(self, *, before: float, limit: int) -> Sequence[HeldRequest]:
        """Deletes at most `limit` requests whose person was asked something before a time and never answered. Returns
        them, with their threads locked.
        """
        rows = await self._session.rows(_OLD_HELD, before=before, limit=limit)
        for thread_id in sorted({row["thread_id"] for row in rows}):
            await self._session.lock_thread(thread_id)
        if not rows:
            return []
        deleted = await self._session.execute(_DELETE_HELD, {"ids": [row["id"] for row in rows]})
        held = [HeldRequest(row.thread_id, row.person_id) for row in deleted]
        for person_id in sorted({each.person_id for each in held}):
            await home_changed(self._session, person_id)
        return held

    async def forget_person(self, person_id: str, *, limit: int) -> Deleted:
        """Deletes everything of a person, open or not: threads they began with all that belongs to them, and their
        requests and notices in other threads, audit entries, preferences and drafts; at most `limit` of each. Call it
        until nothing is deleted.
        """
        whole_threads = await self._delete_threads(_THREADS_OF_PERSON, person_id, limit)
        requests_left = await self._ids(_REQUESTS_OF_PERSON, whose=person_id, limit=limit)
        notices_left = await self._ids(_NOTICES_TO_PERSON, whose=person_id, limit=limit)
        return whole_threads + Deleted(
            requests=await self._delete(_DELETE_REQUESTS, requests_left),
            notices=await self._delete(_DELETE_NOTICES, notices_left),
            early_replies=await self._delete_all(_DELETE_EARLY_OF_PERSON, person_id),
            others=await self._delete_audit(_AUDIT_OF_PERSON, person_id, limit)
            + sum([await self._delete_all(statement, person_id) for statement in _OWN]),
        )

    async def forget_channel(self, channel_id: str, *, limit: int) -> Deleted:
        """Deletes everything of a channel, open or not: at most `limit` threads with all that belongs to them, as many
        audit entries, early replies and versions of messages. Call it until nothing is deleted.
        """
        thread_ids = await self._ids(_THREADS_OF_CHANNEL, whose=channel_id, limit=limit)
        drafted = await self._delete_drafts_at(channel_id, {f"thread/{thread_id}" for thread_id in thread_ids})
        whole_threads = await self._delete_threads(_THREADS_OF_CHANNEL, channel_id, limit)
        return whole_threads + Deleted(
            early_replies=await self._delete_all(_DELETE_EARLY_OF_CHANNEL, channel_id),
            others=drafted
            + await self._delete_audit(_AUDIT_OF_CHANNEL, channel_id, limit)
            + await self._delete_all(_DELETE_VERSIONS_OF_CHANNEL, channel_id),
        )

    async def _delete_drafts_at(self, channel_id: str, threads_there: set[str]) -> int:
        """Deletes drafts of modals that were opened in a channel."""
        rows = await self._session.rows(_DRAFTS)
        there = [
            {"whose": row["person_id"], "at": row["place"]}
            for row in rows
            if row["place"] in threads_there
            or row["place"] == f"job/{channel_id}"
            or row["place"].startswith(f"message/{channel_id}/")
        ]
        if there:
            await self._session.execute(_DELETE_DRAFT_AT, there)
        return len(there)

    async def _delete_audit(self, some: Select[Any], whose: str, limit: int) -> int:
        return await self._delete(_DELETE_AUDIT, await self._ids(some, whose=whose, limit=limit))

    async def _delete_all(self, statement: Delete, whose: str) -> int:
        return (await self._session.execute(statement, {"whose": whose})).rowcount

    async def _delete_threads(self, some: Select[Any], whose: str, limit: int) -> Deleted:
        ids = await self._ids(some, whose=whose, limit=limit)
        return Deleted(
            notices=await self._delete(_DELETE_NOTICES_OF_THREADS, ids),
            requests=await self._delete(_DELETE_REQUESTS_OF_THREADS, ids),
            jobs=await self._delete(_DELETE_THREADS, ids),
        )

    async def _ids(self, some: Select[Any], **values: object) -> Sequence[Any]:
        return (await self._session.execute(some, values)).scalars().all()

    async def _delete(self, statement: Delete, ids: Sequence[Any]) -> int:
        return (await self._session.execute(statement, {"ids": ids})).rowcount if ids else 0
