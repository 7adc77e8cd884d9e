"""Checks whether the database accepts writes, and which jobs have been open for long."""

from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Double, bindparam, delete, func, insert, literal, select

from bot.domain.requests.request import Person, Reply
from bot.store.claims import LIMIT
from bot.store.schema.rows import early_reply_values
from bot.store.schema.tables import early_replies, polls, threads
from bot.store.session import Part


@dataclass(frozen=True)
class LongOpenJobs:
    """The number of jobs open for long without a change, and the age of the oldest in seconds."""

    count: int
    oldest: float


_FILLING = "x" * 8_000
"""Bytes, as many as a few rows of a request, so SQLite's log needs room for those."""
_SMALL_MEMORY = select(func.set_config("work_mem", "64kB", literal(True)))
_ON_DISK = select(func.count()).select_from(func.generate_series(1, 5_000))
"""More rows than fit into the reduced memory (about 0.1 MB), so PostgreSQL writes them to a file beside the tables."""
_WRITE = insert(early_replies)
_TAKE_BACK = delete(early_replies).where(
    early_replies.c.channel_id == bindparam("channel"), early_replies.c.message_ts == bindparam("written")
)
_OPEN = (
    select(polls.c.thread_id)
    .where(polls.c.due_at.is_not(None))
    .order_by(polls.c.due_at)
    .limit(LIMIT)
    .subquery("open_jobs")
)
_LONG_OPEN = (
    select(func.count().label("jobs"), func.min(threads.c.updated_at).label("since"))
    .select_from(_OPEN)
    .join(threads, threads.c.id == _OPEN.c.thread_id)
    .where(threads.c.job_id.is_not(None), threads.c.updated_at < bindparam("before", type_=Double))
)


class DatabaseCheck(Part):
    """Checks whether the database works."""

    async def try_write(self) -> None:
        # On SQLite, the commit writes the changed pages and waits for the disk, even though no row remains. On
        # PostgreSQL that is not enough: a row fits into an existing page long after the disk is full. So a file has to
        # grow as well: a query's temporary file, which is deleted afterwards.
        """Writes about as much as a person's request and leaves nothing behind, so that it fails if nothing can be
        recorded: the disk is full, the database is read-only or locked by another program.
        """
        session = self._session
        if session.dialect == "postgresql":
            await session.execute(_SMALL_MEMORY)
            await session.execute(_ON_DISK)
        nobody = Reply(Person("", ""), "probe", "", uuid4().hex, _FILLING)  # so no two processes wait for each other
        await session.execute(_WRITE, early_reply_values(nobody))
        await session.execute(_TAKE_BACK, {"channel": nobody.channel_id, "written": nobody.message_ts})

    async def long_open(self, *, before: float, limit: int) -> LongOpenJobs:
        """Returns jobs that are still polled and have not changed since `before`, among the `limit` that are polled
        next.
        """
        found = (await self._session.execute(_LONG_OPEN, {"before": before, "limit": limit})).mappings().one()
        return LongOpenJobs(int(found["jobs"]), self._session.now - float(found["since"]) if found["jobs"] else 0.0)
