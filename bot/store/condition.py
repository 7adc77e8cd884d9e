"""How the database is: what waits in it, whether it accepts writes, and when what last happened."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pydantic_core import from_json
from sqlalchemy import ColumnElement, Connection, Table, Text, cast, delete, func, insert, literal, select, union_all
from sqlalchemy.dialects.postgresql import JSONB

from bot.domain.findings import LastTime
from bot.domain.requests.request import Person, Reply
from bot.domain.slack_limits import counted
from bot.queue.engine import run_in
from bot.queue.migration import SchemaState
from bot.queue.transaction import replacing
from bot.store.schema.migration import state_of
from bot.store.schema.rows import early_reply_values
from bot.store.schema.tables import (
    early_replies,
    gaps,
    homes,
    last_times,
    notices,
    polls,
    pull_requests,
    request_files,
    requests,
    slack_calls,
    threads,
    to_be_prepared,
    to_be_sent,
)
from bot.store.session import Part


@dataclass(frozen=True)
class QueueLength:
    """How many rows of a queue are open, and for how many seconds the oldest has been due."""

    queue: str
    rows: int
    overdue: float


@dataclass(frozen=True)
class Backlog:
    """What waits: the queues, the jobs that are polled by status, and how many calls of each Slack method count towards
    its limit now.
    """

    queues: Sequence[QueueLength]
    jobs: Mapping[str, int]
    slack_calls: Mapping[str, int]


def _queue(name: str, table: Table, *conditions: ColumnElement[bool]) -> Any:
    return select(
        literal(name, literal_execute=True).label("queue"),
        func.count().label("rows"),
        func.min(table.c.due_at).label("due_at"),
    ).where(table.c.due_at.is_not(None), *conditions)


_QUEUES = union_all(
    _queue("prepare", requests, to_be_prepared(requests)),
    _queue("upload", request_files),
    _queue("send", requests, to_be_sent(requests)),
    _queue("poll", polls),
    _queue("follow", pull_requests),
    _queue("deliver", notices),
    _queue("home", homes),
    _queue("read", gaps),
)


def _jobs(status: ColumnElement[str]) -> Any:
    counted = select(func.coalesce(status, literal("")).label("status"), func.count().label("jobs"))
    joined = counted.join_from(polls, threads, threads.c.id == polls.c.thread_id)
    return joined.where(polls.c.due_at.is_not(None), threads.c.job_id.is_not(None)).group_by("status")


_JOBS = {
    "postgresql": _jobs(cast(threads.c.state, JSONB)["job"]["status"].astext),
    "sqlite": _jobs(func.json_extract(threads.c.state, "$.job.status", type_=Text)),
}


_NOTE = replacing(last_times, "at")


class Condition(Part):
    """How the database is: what waits in it, whether it accepts writes, and when what last happened."""

    async def backlog(self, methods: Collection[str]) -> Backlog:
        """Reads what waits, with the calls of these Slack methods. Its cost depends only on what is open."""
        session = self._session
        queues = [
            QueueLength(row["queue"], row["rows"], max(session.now - (row["due_at"] or session.now), 0.0))
            for row in (await session.execute(_QUEUES)).mappings()
        ]
        jobs: Mapping[str, int] = {row["status"]: row["jobs"] for row in await session.rows(_JOBS[session.dialect])}
        in_workspace = (slack_calls.c.method.in_(methods), slack_calls.c.channel_id == "")
        rows = await session.rows(select(slack_calls).where(*in_workspace))
        made = {row["method"]: from_json(row["calls"]) for row in rows}
        calls = {method: len(counted(each, session.now)) for method, each in made.items()}
        return Backlog(queues, jobs, calls)

    async def try_write(self) -> None:
        """Writes about as much as a person's request and leaves nothing behind, so that it fails if nothing can be
        recorded: the disk is full, the database is read-only or locked by another program.
        """
        session = self._session
        if session.dialect == "postgresql":
            # A row fits into an existing page long after the disk is full. So a file has to grow as well: the
            # temporary one of a query with more rows than fit into the reduced memory (about 0.1 MB).
            await session.execute(select(func.set_config("work_mem", "64kB", literal(True))))
            await session.execute(select(func.count()).select_from(func.generate_series(1, 5_000)))
        # On SQLite, the commit writes the changed pages and waits for the disk, even though no row remains.
        # As long as a few rows of a request, so SQLite's log needs room for those; an id of its own, so that no two
        # processes wait for each other.
        nobody = Reply(Person("", ""), "probe", "", uuid4().hex, "x" * 8_000)
        await session.execute(insert(early_replies), early_reply_values(nobody))
        this = (early_replies.c.channel_id == nobody.channel_id, early_replies.c.message_ts == nobody.message_ts)
        await session.execute(delete(early_replies).where(*this))

    async def note_last_times(self, kinds: Collection[LastTime]) -> None:
        """Records that events of these kinds happened now."""
        if kinds:
            now = self._session.now
            # The same order in all processes.
            await self._session.execute(_NOTE, [{"kind": kind, "at": now} for kind in sorted(kinds)])


_PATIENCE = 3.0
"""Seconds to retry, and for a statement: the answer is how the database is now."""


@dataclass(frozen=True)
class DatabaseCondition:
    """The condition of a database. `clock` is its own time, in seconds since the epoch; None if it has none."""

    schema: SchemaState
    clock: float | None = None
    last: Mapping[LastTime, float] = field(default_factory=dict)


async def database_condition(url: str) -> DatabaseCondition:
    """Reads the condition of a database. Raises ConfigError, StoreError."""
    return await run_in(
        url, lambda connection: connection.run_sync(_read), statement_timeout=_PATIENCE, retry_for=_PATIENCE
    )


def _read(connection: Connection) -> DatabaseCondition:
    schema, clock = state_of(connection), None
    if connection.dialect.name == "postgresql":
        clock = float(connection.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one())
    if not schema.usable:
        return DatabaseCondition(schema, clock)
    # Kinds that only a newer version knows are left out.
    known = select(last_times.c.kind, last_times.c.at).where(last_times.c.kind.in_(list(LastTime)))
    return DatabaseCondition(schema, clock, {LastTime(kind): at for kind, at in connection.execute(known)})
