"""The store behind the job API: create, message, get, cancel, discard; and the end of old jobs, in batches."""

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import aiosqlite

from bot.jobapi.models import AgentJob, AttachedFile, Requester, Status
from bot.jobserver.errors import JobServerError, RateLimitExceededError, RequestRejectedError
from bot.jobserver.store.database import Database, fetch_row
from bot.jobserver.store.records import (
    Cancellation,
    JobTemplate,
    PromptRequest,
    as_text,
    branch_name,
    end_if_idle,
    forget_last_words,
    forget_partial_work,
    read_details,
    read_job,
    write_details,
)

_HOUR = timedelta(hours=1)
ANSWERS_KEPT = timedelta(days=30)
BATCH_SIZE = 200
"""Rows per transaction, so that others do not wait long."""
_BRANCH_RETRY_PERIOD = timedelta(days=7)


class JobStore:
    """Every method is one transaction; those that end old jobs are of at most BATCH_SIZE rows."""

    def __init__(self, database: Database, *, rate_limit: int, now: Callable[[], datetime]) -> None:
        self._database = database
        self._rate_limit = rate_limit
        self._now = now

    async def submit(self, request: PromptRequest, template: JobTemplate) -> AgentJob:
        """Records a new job or a message and queues its prompt; a repeated Idempotency-Key gets the first response.

        Raises:
            RequestRejectedError: one of its subclasses.
        """
        async with self._database.transaction() as connection:
            if known := await _kept_answer(connection, request):
                return known
            if request.job_id is not None:
                known_job = await read_job(connection, request.project_id, request.job_id)
                if known_job.status is Status.ARCHIVED:
                    raise RequestRejectedError("this job is archived and accepts no more messages: create a new job")
            await _check_uploaded(connection, request.files)
            await self._check_rate_limit(connection, request.project_id)
            now = as_text(self._now())
            if request.job_id is None:
                job_id = await _insert_job(connection, request.project_id, template, now)
            else:
                await _reactivate_job(connection, job_id := request.job_id)
            number = await _queue_instruction(connection, request, job_id, now)
            await connection.executemany(
                "INSERT INTO attachments (instruction, position, upload_id, name, mimetype) VALUES (?, ?, ?, ?, ?)",
                [(number, place, file.id, file.name, file.mimetype) for place, file in enumerate(request.files)],
            )
            job = await read_job(connection, request.project_id, job_id)
            await _keep_answer(connection, request, job, now)
            return job

    async def get(self, project_id: str, job_id: str) -> AgentJob:
        """Returns a job. Raises RequestRejectedError."""
        async with self._database.transaction() as connection:
            return await read_job(connection, project_id, job_id)

    async def cancel(self, project_id: str, job_id: str, requester: Requester | None = None) -> Cancellation:
        """Stops all waiting instructions, and marks the running one to be stopped. A job that has ended does not
        change.

        Raises:
            RequestRejectedError: the project has no such job.
        """
        async with self._database.transaction() as connection:
            job = await read_job(connection, project_id, job_id)
            if job.status is not Status.ACTIVE:
                return Cancellation(job)
            reason = f"stopped by {requester.name}" if requester else "stopped by request"
            running = await _stop_instructions(connection, job_id, reason)
            await connection.execute("UPDATE jobs SET failure = NULL WHERE id = ?", (job_id,))
            details = await read_details(connection, job_id)
            await write_details(connection, job_id, details.model_copy(update={"reason": reason}))
            await end_if_idle(connection, job_id, as_text(self._now()))
            return Cancellation(await read_job(connection, project_id, job_id), running)

    async def discard(self, project_id: str, job_id: str) -> AgentJob:
        """Throws away the work of a failed instruction. An active job does not change.

        Raises:
            RequestRejectedError: the project has no such job.
        """
        async with self._database.transaction() as connection:
            job = await read_job(connection, project_id, job_id)
            if job.status is not Status.ACTIVE:
                await forget_partial_work(connection, job_id)
            return await read_job(connection, project_id, job_id)

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

    async def check(self) -> None:
        """Raises an error if the tables cannot be used."""
        await self._database.execute("SELECT 1 FROM jobs LIMIT 1")

    async def _check_rate_limit(self, connection: aiosqlite.Connection, project_id: str) -> None:
        now = self._now()
        rows = list(
            await connection.execute_fetchall(
                "SELECT created_at FROM instructions WHERE project_id = ? AND created_at > ? "
                "ORDER BY created_at DESC LIMIT 1 OFFSET ?",
                (project_id, as_text(now - _HOUR), self._rate_limit - 1),
            )
        )
        if rows:
            free_at = datetime.fromisoformat(rows[0]["created_at"]) + _HOUR
            raise RateLimitExceededError(max(1, int((free_at - now).total_seconds()) + 1))


async def _kept_answer(connection: aiosqlite.Connection, request: PromptRequest) -> AgentJob | None:
    if request.idempotency_key is None:
        return None
    row = await fetch_row(
        connection,
        "SELECT fingerprint, answer FROM answers WHERE project_id = ? AND key = ?",
        (request.project_id, request.idempotency_key),
    )
    if row is None:
        return None
    if row["fingerprint"] != request.fingerprint:
        raise RequestRejectedError("this Idempotency-Key was used for another request: use a new one", 422)
    return AgentJob.model_validate_json(row["answer"])


async def _keep_answer(connection: aiosqlite.Connection, request: PromptRequest, job: AgentJob, now: str) -> None:
    if request.idempotency_key is not None:
        await connection.execute(
            "INSERT INTO answers (key, project_id, fingerprint, answer, created_at, job_id) VALUES (?, ?, ?, ?, ?, ?)",
            (request.idempotency_key, request.project_id, request.fingerprint, job.model_dump_json(), now, job.id),
        )


async def _check_uploaded(connection: aiosqlite.Connection, files: Sequence[AttachedFile]) -> None:
    """Raises RequestRejectedError for the first file that has not been uploaded."""
    for index, file in enumerate(files):
        if await fetch_row(connection, "SELECT 1 FROM uploads WHERE id = ?", (file.id,)) is None:
            raise RequestRejectedError(
                f"files.{index}.id: this file has not been uploaded: upload it with PUT, then send this again"
            )


async def _insert_job(connection: aiosqlite.Connection, project_id: str, template: JobTemplate, now: str) -> str:
    job_id = secrets.token_hex(8)
    await connection.execute(
        "INSERT INTO jobs (id, project_id, status, repository, ref, model, branch, created_at) "
        "VALUES (?, ?, 'active', ?, ?, ?, ?, ?)",
        (job_id, project_id, template.repository, template.ref, template.model, branch_name(job_id, 1), now),
    )
    return job_id


async def _reactivate_job(connection: aiosqlite.Connection, job_id: str) -> None:
    """Clears the last words of a job that had ended; an active one keeps them, and its failure, until it ends."""
    cursor = await connection.execute(
        "UPDATE jobs SET status = 'active', failure = NULL, finished_at = NULL WHERE id = ? AND status <> 'active'",
        (job_id,),
    )
    if cursor.rowcount:
        await forget_last_words(connection, job_id)


async def _queue_instruction(connection: aiosqlite.Connection, request: PromptRequest, job_id: str, now: str) -> int:
    who = request.requester
    asked = (who.name, who.id, who.url) if who else (None, None, None)
    cursor = await connection.execute(
        "INSERT INTO instructions (job_id, project_id, prompt, state, created_at, "
        "requester_name, requester_id, requester_url, request_id, words) VALUES (?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?) "
        "RETURNING number",
        (job_id, request.project_id, request.prompt, now, *asked, request.request_id, request.words),
    )
    row = await cursor.fetchone()
    if row is None:
        raise JobServerError("the database did not number an instruction")
    return int(row["number"])


async def _stop_instructions(connection: aiosqlite.Connection, job_id: str, reason: str) -> int | None:
    """Ends instructions that never started; others may be partly pushed, so the queue decides how they end."""
    await connection.execute(
        "UPDATE instructions SET stop_reason = ?, answer = ?, state = 'stopped' "
        "WHERE job_id = ? AND state = 'queued' AND attempts = 0",
        (reason, f"({reason})", job_id),
    )
    rows = await connection.execute_fetchall(
        "UPDATE instructions SET stop_reason = coalesce(stop_reason, ?) "
        "WHERE job_id = ? AND state IN ('queued', 'running') RETURNING number, state",
        (reason, job_id),
    )
    return next((row["number"] for row in rows if row["state"] == "running"), None)


async def _proposed_branches(connection: aiosqlite.Connection, job_id: str) -> list[str]:
    """Returns the job's branches that have or had a pull request; others stay, since nobody could review them."""
    row = await fetch_row(connection, "SELECT branch, branch_number, pr_branch FROM jobs WHERE id = ?", (job_id,))
    if row is None:
        return []
    current = [row["branch"]] if row["branch"] == row["pr_branch"] else []
    return [branch_name(job_id, number) for number in range(1, row["branch_number"])] + current
