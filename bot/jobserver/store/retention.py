"""Archives finished jobs and deletes old ones, in batches."""

from collections.abc import Callable
from datetime import datetime, timedelta

import aiosqlite

from bot.jobserver.store.database import Database, fetch_row
from bot.jobserver.store.records import as_text, branch_name

ANSWERS_KEPT = timedelta(days=30)
BATCH_SIZE = 200
"""Rows per transaction, so that others do not wait long."""
_BRANCH_RETRY_PERIOD = timedelta(days=7)


class JobRetention:
    """Every method is one transaction of at most BATCH_SIZE rows."""

    def __init__(self, database: Database, *, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now

    async def archive(self, age: timedelta) -> int:
        """Archives jobs that finished at least this long ago; returns how many."""
        now = self._now()
        return await self._database.execute(
            "UPDATE jobs SET status = 'archived', archived_at = ? WHERE id IN "
            "(SELECT id FROM jobs WHERE archived_at IS NULL AND finished_at <= ? ORDER BY finished_at LIMIT ?)",
            (as_text(now), as_text(now - age), BATCH_SIZE),
        )

    async def delete_answers(self) -> int:
        """Deletes responses whose Idempotency-Key may be reused; returns how many."""
        return await self._database.execute(
            "DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers WHERE created_at < ? LIMIT ?)",
            (as_text(self._now() - ANSWERS_KEPT), BATCH_SIZE),
        )

    async def jobs_to_delete(self, age: timedelta) -> list[str]:
        """Returns the ids of jobs that were archived at least this long ago."""
        rows = await self._database.rows(
            "SELECT id FROM jobs WHERE archived_at IS NOT NULL AND archived_at <= ? ORDER BY archived_at LIMIT ?",
            (as_text(self._now() - age), BATCH_SIZE),
        )
        return [row["id"] for row in rows]

    async def delete_jobs(self, job_ids: list[str]) -> None:
        """Deletes jobs with their instructions and stored responses, and records their branches."""
        now = as_text(self._now())
        async with self._database.transaction() as connection:
            for job_id in job_ids:
                for name in await _proposed_branches(connection, job_id):
                    await connection.execute("INSERT OR IGNORE INTO old_branches VALUES (?, ?)", (name, now))
                await connection.execute("DELETE FROM answers WHERE job_id = ?", (job_id,))
                await connection.execute("DELETE FROM jobs WHERE id = ?", (job_id,))

    async def jobs_with_partial_work(self) -> set[str]:
        rows = await self._database.rows("SELECT id FROM jobs WHERE partial_commit IS NOT NULL")
        return {row["id"] for row in rows}

    async def old_branches(self, after: str = "") -> list[str]:
        """Returns branches of deleted jobs in order, starting after the name `after`."""
        rows = await self._database.rows(
            "SELECT name FROM old_branches WHERE name > ? ORDER BY name LIMIT ?", (after, BATCH_SIZE)
        )
        return [row["name"] for row in rows]

    async def forget_branch(self, name: str) -> None:
        await self._database.execute("DELETE FROM old_branches WHERE name = ?", (name,))

    async def give_up_branches(self) -> int:
        """Forgets branches that could not be deleted within a week; returns how many."""
        return await self._database.execute(
            "DELETE FROM old_branches WHERE left_at < ?", (as_text(self._now() - _BRANCH_RETRY_PERIOD),)
        )


async def _proposed_branches(connection: aiosqlite.Connection, job_id: str) -> list[str]:
    """Returns the job's branches that have or had a pull request; others stay, since nobody could review them."""
    row = await fetch_row(connection, "SELECT branch, branch_number, pr_branch FROM jobs WHERE id = ?", (job_id,))
    if row is None:
        return []
    current = [row["branch"]] if row["branch"] == row["pr_branch"] else []
    return [branch_name(job_id, number) for number in range(1, row["branch_number"])] + current
