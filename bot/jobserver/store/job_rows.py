"""What every part of the store does to a job's row, within somebody's transaction."""

from collections.abc import Sequence

import aiosqlite

from bot.jobserver.errors import FileNotUploadedError, JobNotFoundError
from bot.jobserver.models import AgentJob, AttachedFile, JobDetails
from bot.jobserver.store.records import Attachment, job_from_row


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


# Which uploaded files came with which instruction.

_MOST_ATTACHMENTS = 100
"""Files of one job that an editor is given, the newest."""


async def check_uploaded(connection: aiosqlite.Connection, files: Sequence[AttachedFile]) -> None:
    """Raises FileNotUploadedError for the first file that is not kept here."""
    for index, file in enumerate(files):
        cursor = await connection.execute("SELECT 1 FROM uploads WHERE id = ?", (file.id,))
        if await cursor.fetchone() is None:
            raise FileNotUploadedError(
                f"files.{index}.id: there is no such file here: upload it with PUT, then send this again"
            )


async def attach(connection: aiosqlite.Connection, instruction: int, files: Sequence[AttachedFile]) -> None:
    """Records the files of a new instruction."""
    await connection.executemany(
        "INSERT INTO attachments (instruction, position, upload_id, name, mimetype) VALUES (?, ?, ?, ?, ?)",
        [(instruction, position, file.id, file.name, file.mimetype) for position, file in enumerate(files)],
    )


async def attachments_until(connection: aiosqlite.Connection, job_id: str, number: int) -> tuple[Attachment, ...]:
    """Returns the files that came with a job's instructions up to this one, the oldest first."""
    rows = await connection.execute_fetchall(
        "SELECT attachments.*, uploads.size, coalesce(attachments.mimetype, uploads.mimetype) AS kind "
        "FROM instructions JOIN attachments ON instruction = number JOIN uploads ON uploads.id = upload_id "
        "WHERE job_id = ? AND number <= ? ORDER BY number DESC, position DESC LIMIT ?",
        (job_id, number, _MOST_ATTACHMENTS),
    )
    return tuple(
        Attachment(row["upload_id"], row["name"], row["kind"], row["size"], row["instruction"])
        for row in reversed(list(rows))
    )
