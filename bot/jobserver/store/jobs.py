"""The tables of jobs and of the instructions given to them."""

import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiosqlite

from bot.jobserver.errors import (
    IdempotencyKeyReusedError,
    JobArchivedError,
    JobNotFoundError,
    RateLimitExceededError,
)
from bot.jobserver.models import AgentJob, Source, Status
from bot.jobserver.store.database import Database

STEPS = (
    """
CREATE TABLE jobs (
    id TEXT PRIMARY KEY, project_id TEXT NOT NULL, status TEXT NOT NULL, repository TEXT NOT NULL, ref TEXT NOT NULL,
    model TEXT NOT NULL, branch TEXT NOT NULL, pr_link TEXT, failure TEXT,
    created_at TEXT NOT NULL, finished_at TEXT, archived_at TEXT
) STRICT;
CREATE TABLE instructions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL REFERENCES jobs (id), project_id TEXT NOT NULL,
    prompt TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed')),
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX instructions_of_job ON instructions (job_id, number);
CREATE INDEX instructions_of_project ON instructions (project_id, created_at);
CREATE INDEX instructions_waiting ON instructions (state) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_to_archive ON jobs (finished_at) WHERE archived_at IS NULL;
CREATE TABLE answers (
    key TEXT NOT NULL, project_id TEXT NOT NULL, fingerprint TEXT NOT NULL, answer TEXT NOT NULL,
    created_at TEXT NOT NULL, PRIMARY KEY (project_id, key)
) STRICT;
""",
)
_HOUR = timedelta(hours=1)
ANSWERS_KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Instruction:
    """One prompt of a job, on its way through the queue."""

    number: int
    job_id: str
    branch: str
    prompt: str


@dataclass(frozen=True)
class PromptRequest:
    """A create (no job id) or a message, as a client sent it."""

    project_id: str
    prompt: str
    job_id: str | None = None
    idempotency_key: str | None = None

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps([self.job_id, self.prompt]).encode()).hexdigest()


@dataclass(frozen=True)
class JobTemplate:
    """What all new jobs have in common."""

    repository: str
    ref: str
    model: str


class JobStore:
    """Every method is one transaction."""

    def __init__(self, database: Database, *, rate_limit: int, now: Callable[[], datetime]) -> None:
        self._database = database
        self._rate_limit = rate_limit
        self._now = now

    async def submit(self, request: PromptRequest, template: JobTemplate) -> AgentJob:
        """Records a create or a message and queues its prompt; a repeated Idempotency-Key gets the first answer.

        Raises:
            RequestRejectedError: one of its kinds.
        """
        async with self._database.transaction() as connection:
            if known := await _kept_answer(connection, request):
                return known
            if request.job_id is not None:
                await _check_not_archived(connection, request.project_id, request.job_id)
            await self._check_rate_limit(connection, request.project_id)
            now = _iso(self._now())
            job_id = await _insert_or_reactivate_job(connection, request, template, now)
            await _queue_instruction(connection, request, job_id, now)
            job = await _job(connection, request.project_id, job_id)
            await _keep_answer(connection, request, job, now)
            return job

    async def get(self, project_id: str, job_id: str) -> AgentJob:
        async with self._database.transaction() as connection:
            return await _job(connection, project_id, job_id)

    async def check(self) -> None:
        """Raises where the tables cannot be used."""
        async with self._database.transaction() as connection:
            await connection.execute("SELECT 1 FROM jobs LIMIT 1")

    async def requeue_interrupted(self) -> list[str]:
        """Queues the instructions again that were running when the server ended.

        Returns the ids of all jobs that have work, the one that has waited longest first.
        """
        async with self._database.transaction() as connection:
            await connection.execute("UPDATE instructions SET state = 'queued' WHERE state = 'running'")
            rows = await connection.execute_fetchall(
                "SELECT job_id FROM instructions WHERE state = 'queued' GROUP BY job_id ORDER BY min(number)"
            )
            return [row["job_id"] for row in rows]

    async def next_instruction(self, job_id: str) -> Instruction | None:
        """Marks the job's oldest queued instruction as running and returns it."""
        async with self._database.transaction() as connection:
            cursor = await connection.execute(
                "SELECT number, prompt, branch FROM instructions JOIN jobs ON jobs.id = job_id "
                "WHERE job_id = ? AND state = 'queued' ORDER BY number LIMIT 1",
                (job_id,),
            )
            row = await cursor.fetchone()
            if row is None:
                return None
            await connection.execute("UPDATE instructions SET state = 'running' WHERE number = ?", (row["number"],))
            return Instruction(row["number"], job_id, row["branch"], row["prompt"])

    async def finish(self, instruction: Instruction, *, pr_link: str | None = None, failure: str | None = None) -> None:
        """Records how an instruction ended; with nothing left in the queue the job ends too.

        A failure of one instruction is not hidden by the success of the next one in the queue.
        """
        async with self._database.transaction() as connection:
            await connection.execute(
                "UPDATE instructions SET state = ? WHERE number = ?",
                ("failed" if failure else "done", instruction.number),
            )
            await connection.execute(
                "UPDATE jobs SET pr_link = coalesce(?, pr_link), failure = coalesce(?, failure) WHERE id = ?",
                (pr_link, failure, instruction.job_id),
            )
            await connection.execute(
                "UPDATE jobs SET status = CASE WHEN failure IS NULL THEN 'completed' ELSE 'failed' END, "
                "finished_at = ? WHERE id = ? AND NOT EXISTS "
                "(SELECT 1 FROM instructions WHERE job_id = jobs.id AND state IN ('queued', 'running'))",
                (_iso(self._now()), instruction.job_id),
            )

    async def archive(self, age: timedelta) -> list[str]:
        """Archives the jobs that finished at least this long ago, and deletes old answers; returns the jobs' ids."""
        now = self._now()
        async with self._database.transaction() as connection:
            await connection.execute("DELETE FROM answers WHERE created_at < ?", (_iso(now - ANSWERS_KEPT),))
            rows = await connection.execute_fetchall(
                "UPDATE jobs SET status = 'archived', archived_at = ? "
                "WHERE archived_at IS NULL AND finished_at <= ? RETURNING id",
                (_iso(now), _iso(now - age)),
            )
            return [row["id"] for row in rows]

    async def _check_rate_limit(self, connection: aiosqlite.Connection, project_id: str) -> None:
        now = self._now()
        rows = list(
            await connection.execute_fetchall(
                "SELECT created_at FROM instructions WHERE project_id = ? AND created_at > ? "
                "ORDER BY created_at DESC LIMIT 1 OFFSET ?",
                (project_id, _iso(now - _HOUR), self._rate_limit - 1),
            )
        )
        if rows:
            free_at = datetime.fromisoformat(rows[0]["created_at"]) + _HOUR
            raise RateLimitExceededError(max(1, int((free_at - now).total_seconds()) + 1))


async def _kept_answer(connection: aiosqlite.Connection, request: PromptRequest) -> AgentJob | None:
    if request.idempotency_key is None:
        return None
    cursor = await connection.execute(
        "SELECT fingerprint, answer FROM answers WHERE project_id = ? AND key = ?",
        (request.project_id, request.idempotency_key),
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    if row["fingerprint"] != request.fingerprint:
        raise IdempotencyKeyReusedError("this Idempotency-Key was used for another request: use a new one")
    return AgentJob.model_validate_json(row["answer"])


async def _keep_answer(connection: aiosqlite.Connection, request: PromptRequest, job: AgentJob, now: str) -> None:
    if request.idempotency_key is not None:
        await connection.execute(
            "INSERT INTO answers (key, project_id, fingerprint, answer, created_at) VALUES (?, ?, ?, ?, ?)",
            (request.idempotency_key, request.project_id, request.fingerprint, job.model_dump_json(), now),
        )


async def _check_not_archived(connection: aiosqlite.Connection, project_id: str, job_id: str) -> None:
    job = await _job(connection, project_id, job_id)
    if job.status is Status.ARCHIVED:
        raise JobArchivedError("this job is archived and takes no more messages: create a new job")


async def _insert_or_reactivate_job(
    connection: aiosqlite.Connection, request: PromptRequest, template: JobTemplate, now: str
) -> str:
    if request.job_id is None:
        return await _insert_job(connection, request.project_id, template, now)
    await _reactivate_job(connection, request.job_id)
    return request.job_id


async def _insert_job(connection: aiosqlite.Connection, project_id: str, template: JobTemplate, now: str) -> str:
    job_id = secrets.token_hex(8)
    await connection.execute(
        "INSERT INTO jobs (id, project_id, status, repository, ref, model, branch, created_at) "
        "VALUES (?, ?, 'active', ?, ?, ?, ?, ?)",
        (job_id, project_id, template.repository, template.ref, template.model, f"pagehand/{job_id}", now),
    )
    return job_id


async def _reactivate_job(connection: aiosqlite.Connection, job_id: str) -> None:
    """Clears the failure of a job that had ended; one at work keeps it, and will end as `failed`."""
    await connection.execute(
        "UPDATE jobs SET failure = CASE status WHEN 'active' THEN failure END, status = 'active', "
        "finished_at = NULL WHERE id = ?",
        (job_id,),
    )


async def _queue_instruction(connection: aiosqlite.Connection, request: PromptRequest, job_id: str, now: str) -> None:
    await connection.execute(
        "INSERT INTO instructions (job_id, project_id, prompt, state, created_at) VALUES (?, ?, ?, 'queued', ?)",
        (job_id, request.project_id, request.prompt, now),
    )


async def _job(connection: aiosqlite.Connection, project_id: str, job_id: str) -> AgentJob:
    cursor = await connection.execute("SELECT * FROM jobs WHERE project_id = ? AND id = ?", (project_id, job_id))
    row = await cursor.fetchone()
    if row is None:
        raise JobNotFoundError("there is no such job in this project")
    return AgentJob(
        id=row["id"],
        status=Status(row["status"]),
        source=Source(repository=row["repository"], ref=row["ref"]),
        model=row["model"],
        pr_link=None if row["status"] == Status.ACTIVE else row["pr_link"],
        created_at=datetime.fromisoformat(row["created_at"]),
        archived_at=datetime.fromisoformat(row["archived_at"]) if row["archived_at"] else None,
    )


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
