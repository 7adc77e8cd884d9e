"""What every part of the store does to a job's row, within somebody's transaction."""

import aiosqlite

from bot.jobserver.errors import JobNotFoundError
from bot.jobserver.models import AgentJob, JobDetails
from bot.jobserver.store.records import job_from_row


async def read_job(connection: aiosqlite.Connection, project_id: str, job_id: str) -> AgentJob:
    """Returns a job.

    Raises:
        JobNotFoundError: the project has none of this id.
    """
    cursor = await connection.execute("SELECT * FROM jobs WHERE project_id = ? AND id = ?", (project_id, job_id))
    row = await cursor.fetchone()
    if row is None:
        raise JobNotFoundError("there is no such job in this project")
    return job_from_row(row)


async def read_details(connection: aiosqlite.Connection, job_id: str) -> JobDetails:
    """Returns the details as they are kept; none of a job that is gone."""
    cursor = await connection.execute("SELECT details FROM jobs WHERE id = ?", (job_id,))
    row = await cursor.fetchone()
    return JobDetails.model_validate_json(row["details"]) if row else JobDetails()


async def write_details(connection: aiosqlite.Connection, job_id: str, details: JobDetails) -> None:
    await connection.execute(
        "UPDATE jobs SET details = ? WHERE id = ?", (details.model_dump_json(exclude_defaults=True), job_id)
    )


async def forget_last_words(connection: aiosqlite.Connection, job_id: str) -> None:
    """Clears what the instruction before said and planned; what the pull request holds is still true."""
    known = await read_details(connection, job_id)
    kept = JobDetails(changes=known.changes, pull_request=known.pull_request, revision=known.revision)
    await write_details(connection, job_id, kept)


async def forget_partial_work(connection: aiosqlite.Connection, job_id: str) -> None:
    """For work that is in a pull request now, or that nobody wants; what keeps it in the mirror goes with a sweep."""
    await connection.execute("UPDATE jobs SET partial_commit = NULL, partial_files = 0 WHERE id = ?", (job_id,))


async def end_if_idle(connection: aiosqlite.Connection, job_id: str, now: str) -> None:
    """Ends a job that has nothing left in its queue."""
    await connection.execute(
        "UPDATE jobs SET status = CASE WHEN failure IS NULL THEN 'completed' ELSE 'failed' END, finished_at = ? "
        "WHERE id = ? AND status = 'active' AND NOT EXISTS "
        "(SELECT 1 FROM instructions WHERE job_id = jobs.id AND state IN ('queued', 'running'))",
        (now, job_id),
    )
