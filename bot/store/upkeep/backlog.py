"""What waits in the database, for metrics. Only open rows are read, by partial indexes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json
from sqlalchemy import BindParameter, ColumnElement, Table, Text, bindparam, cast, func, literal, select, union_all
from sqlalchemy.dialects.postgresql import JSONB

from bot.domain.slack_limits import counted
from bot.store.schema.gap_tables import gaps
from bot.store.schema.people_tables import homes
from bot.store.schema.tables import (
    TO_BE_PREPARED,
    TO_BE_SENT,
    notices,
    polls,
    request_files,
    requests,
    slack_calls,
    threads,
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
    _queue("prepare", requests, requests.c.state.in_(TO_BE_PREPARED)),
    _queue("upload", request_files),
    _queue("send", requests, requests.c.state.in_(TO_BE_SENT)),
    _queue("poll", polls),
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
_METHODS: BindParameter[Any] = bindparam("methods", expanding=True)
_CALLS = select(slack_calls).where(slack_calls.c.method.in_(_METHODS), slack_calls.c.channel_id == "")


class Backlogs(Part):
    """What waits in the database."""

    async def read(self, methods: Collection[str]) -> Backlog:
        """Reads it, with the calls of these Slack methods. The cost depends on what is open, not on what has ended."""
        session = self._session
        queues = [
            QueueLength(row["queue"], row["rows"], max(session.now - (row["due_at"] or session.now), 0.0))
            for row in (await session.execute(_QUEUES)).mappings()
        ]
        jobs: Mapping[str, int] = {row["status"]: row["jobs"] for row in await session.rows(_JOBS[session.dialect])}
        made = {row["method"]: from_json(row["calls"]) for row in await session.rows(_CALLS, methods=methods)}
        calls = {method: len(counted(each, session.now)) for method, each in made.items()}
        return Backlog(queues, jobs, calls)
