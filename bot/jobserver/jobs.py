"""The table of jobs and of the instructions given to them."""

import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiosqlite

from bot.jobserver.database import Database
from bot.jobserver.errors import JobServerError
from bot.jobserver.models import AgentJob, Source, Status

SCHEMA = """
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
"""
_HOUR = timedelta(hours=1)
ANSWERS_KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Instruction:
    """One prompt, as the runner works on it."""

    number: int
    job_id: str
    branch: str
    prompt: str


@dataclass(frozen=True)
class Request:
    """A create (no job id) or a message, as a client sent it."""

    project_id: str
    prompt: str
    job_id: str | None = None
    idempotency_key: str | None = None

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps([self.job_id, self.prompt]).encode()).hexdigest()


class RequestError(JobServerError):
    """A request that is not taken; nothing was recorded."""


class UnknownJobError(RequestError):
    """There is no such job."""


class ArchivedJobError(RequestError):
    """The job takes no more messages."""


class KeyReusedError(RequestError):
    """The same Idempotency-Key came with another body or for another job."""


class TooManyError(RequestError):
    """The project has used its hour's share. `retry_after` is in whole seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many requests; try again in {retry_after} s")
        self.retry_after = retry_after


@dataclass(frozen=True)
class Origin:
    """What new jobs work on."""

    repository: str
    ref: str
    model: str


class Jobs:
    """Every method is one transaction."""

    def __init__(self, database: Database, *, rate_limit: int, now: Callable[[], datetime]) -> None:
        self._database = database
        self._rate_limit = rate_limit
        self._now = now

    async def take(self, request: Request, origin: Origin) -> AgentJob:
        """Record a create or a message and queue its prompt; a repeated Idempotency-Key gets the first answer.

        Raises:
            RequestError: one of its kinds.
        """
        async with self._database.transaction() as connection:
            if known := await _known_answer(connection, request):
                return known
            if request.job_id is not None:
                await _check_open(connection, request)
            await self._check_rate(connection, request.project_id)
            now = _iso(self._now())
            job_id = request.job_id or await _insert_job(connection, request.project_id, origin, now)
            if request.job_id is not None:
                await connection.execute(
                    "UPDATE jobs SET failure = CASE status WHEN 'active' THEN failure END, status = 'active', "
                    "finished_at = NULL WHERE id = ?",
                    (job_id,),
                )
            await connection.execute(
                "INSERT INTO instructions (job_id, project_id, prompt, state, created_at) "
                "VALUES (?, ?, ?, 'queued', ?)",
                (job_id, request.project_id, request.prompt, now),
            )
            job = await _job(connection, request.project_id, job_id)
            await _keep_answer(connection, request, job, now)
            return job

    async def get(self, project_id: str, job_id: str) -> AgentJob:
        async with self._database.transaction() as connection:
            return await _job(connection, project_id, job_id)

    async def check(self) -> None:
        """Raise if the table cannot be used."""
        async with self._database.transaction() as connection:
            await connection.execute("SELECT 1 FROM jobs LIMIT 1")

    async def waiting(self) -> list[str]:
        """Ids of the jobs that have work, those that were interrupted first: their instruction starts again."""
        async with self._database.transaction() as connection:
            await connection.execute("UPDATE instructions SET state = 'queued' WHERE state = 'running'")
            rows = await connection.execute_fetchall(
                "SELECT job_id FROM instructions WHERE state = 'queued' GROUP BY job_id ORDER BY min(number)"
            )
            return [row["job_id"] for row in rows]

    async def next_instruction(self, job_id: str) -> Instruction | None:
        """Mark the job's oldest queued instruction as running and return it."""
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
        """Record how an instruction ended; with nothing left in the queue the job ends too.

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
        """Archive the jobs that finished at least this long ago, and forget old answers; returns the jobs' ids."""
        now = self._now()
        async with self._database.transaction() as connection:
            await connection.execute("DELETE FROM answers WHERE created_at < ?", (_iso(now - ANSWERS_KEPT),))
            rows = await connection.execute_fetchall(
                "UPDATE jobs SET status = 'archived', archived_at = ? "
                "WHERE archived_at IS NULL AND finished_at <= ? RETURNING id",
                (_iso(now), _iso(now - age)),
            )
            return [row["id"] for row in rows]

    async def _check_rate(self, connection: aiosqlite.Connection, project_id: str) -> None:
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
            raise TooManyError(max(1, int((free_at - now).total_seconds()) + 1))


async def _known_answer(connection: aiosqlite.Connection, request: Request) -> AgentJob | None:
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
        raise KeyReusedError("this Idempotency-Key was used for another request: use a new one")
    return AgentJob.model_validate_json(row["answer"])


async def _keep_answer(connection: aiosqlite.Connection, request: Request, job: AgentJob, now: str) -> None:
    if request.idempotency_key is not None:
        await connection.execute(
            "INSERT INTO answers (key, project_id, fingerprint, answer, created_at) VALUES (?, ?, ?, ?, ?)",
            (request.idempotency_key, request.project_id, request.fingerprint, job.model_dump_json(), now),
        )


async def _check_open(connection: aiosqlite.Connection, request: Request) -> None:
    job = await _job(connection, request.project_id, request.job_id or "")
    if job.status is Status.ARCHIVED:
        raise ArchivedJobError("this job is archived and takes no more messages: create a new job")


async def _insert_job(connection: aiosqlite.Connection, project_id: str, origin: Origin, now: str) -> str:
    job_id = secrets.token_hex(8)
    await connection.execute(
        "INSERT INTO jobs (id, project_id, status, repository, ref, model, branch, created_at) "
        "VALUES (?, ?, 'active', ?, ?, ?, ?, ?)",
        (job_id, project_id, origin.repository, origin.ref, origin.model, f"pagehand/{job_id}", now),
    )
    return job_id


async def _job(connection: aiosqlite.Connection, project_id: str, job_id: str) -> AgentJob:
    cursor = await connection.execute("SELECT * FROM jobs WHERE project_id = ? AND id = ?", (project_id, job_id))
    row = await cursor.fetchone()
    if row is None:
        raise UnknownJobError("there is no such job in this project")
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
