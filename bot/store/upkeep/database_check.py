"""Whether the database takes writes, and which jobs have been open in it for long."""

from uuid import uuid4

from sqlalchemy import Double, bindparam, delete, func, insert, literal, select

from bot.domain.requests.request import Person, Reply
from bot.ports.upkeep_store import LongOpenJobs
from bot.store.claims import LIMIT
from bot.store.schema.rows import early_reply_values
from bot.store.schema.tables import early_replies, polls, threads
from bot.store.session import Session

_FILLING = "x" * 8_000
"""As much as a few rows that people cause, so that SQLite's log has to have room for those."""
_SMALL_MEMORY = select(func.set_config("work_mem", "64kB", literal(True)))
_ON_DISK = select(func.count()).select_from(func.generate_series(1, 5_000))
"""Takes more than the small memory (about 0.1 MB), so that PostgreSQL writes it to a file beside the tables."""
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


class SqlDatabaseCheck:
    """ports.DatabaseCheck."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def try_write(self) -> None:
        # On SQLite the commit writes the pages that changed and waits for the disk, though nothing is left in them. On
        # PostgreSQL that would not do: a row finds room in a page that is there already, until the disk has long been
        # full. So a file has to grow as well; one of a query's own, which is gone afterwards.
        session = self._session
        if session.dialect == "postgresql":
            await session.execute(_SMALL_MEMORY)
            await session.execute(_ON_DISK)
        nobody = Reply(Person("", ""), "probe", "", uuid4().hex, _FILLING)  # no two processes wait for each other's
        await session.execute(_WRITE, early_reply_values(nobody))
        await session.execute(_TAKE_BACK, {"channel": nobody.channel_id, "written": nobody.message_ts})

    async def long_open(self, *, before: float, limit: int) -> LongOpenJobs:
        found = (await self._session.execute(_LONG_OPEN, {"before": before, "limit": limit})).mappings().one()
        return LongOpenJobs(int(found["jobs"]), self._session.now - float(found["since"]) if found["jobs"] else 0.0)
