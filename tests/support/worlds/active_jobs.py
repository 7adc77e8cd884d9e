"""Fills a database with active jobs that have been unchanged for long, without the store."""

import time

from sqlalchemy import insert
from support.databases import engine_for
from support.worlds.store_world import JOB, a_thread

from bot.domain.threads.thread import Announcements, ThreadState, Work
from bot.notices.job import JobStarted
from bot.store.schema.rows import thread_values
from bot.store.schema.tables import polls, threads


async def fill_with_active_jobs(url: str, count: int, *, due_over: float = 0.0) -> None:
    """Adds these jobs; they fall due one by one over this many seconds, or all at once."""
    now = time.time() - 10.0
    state = ThreadState(
        job=JOB,
        work=Work(changed_at=now - 3_600.0),
        announcements=Announcements(announced=frozenset({JobStarted.KEY})),
    )
    everything = [a_thread(f"t{n}", ts=f"{n}.1", state=state, prompt="Do it. " * 20) for n in range(count)]
    engine = engine_for(url)
    async with engine.begin() as connection:
        rows = [thread_values(thread) | {"updated_at": now} for thread in everything]
        due = [
            {"thread_id": thread.id, "due_at": now + number * due_over / count}
            for number, thread in enumerate(everything)
        ]
        if everything:
            await connection.execute(insert(threads), rows)
            await connection.execute(insert(polls), due)
    await engine.dispose()
