"""Shared queries on a job's row, files, questions and usage, within the caller's transaction."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import aiosqlite

from bot.jobapi.models import AgentJob, AttachedFile, JobDetails
from bot.jobserver.errors import FileNotUploadedError, JobNotFoundError
from bot.jobserver.store.database import Database, fetch_row
from bot.jobserver.store.records import (
    Attachment,
    Instruction,
    Question,
    QueuedReply,
    as_text,
    job_from_row,
    question_as_json,
    spent_from_row,
)
from bot.jobserver.usage import Spent

_MOST_ATTACHMENTS = 100
"""How many of a job's files, the newest, an editor gets."""
_SPENDING_KEPT = timedelta(days=2)
_NO = frozenset({"no", "no thanks", "no thank you", "nope", "stop"})


async def read_job(connection: aiosqlite.Connection, project_id: str, job_id: str) -> AgentJob:
    """Returns a job. Raises JobNotFoundError."""
    row = await fetch_row(connection, "SELECT * FROM jobs WHERE project_id = ? AND id = ?", (project_id, job_id))
    if row is None:
        raise JobNotFoundError("there is no such job in this project")
    return job_from_row(row)


async def read_details(connection: aiosqlite.Connection, job_id: str) -> JobDetails:
    """Returns the stored details; empty ones for a job that no longer exists."""
    row = await fetch_row(connection, "SELECT details FROM jobs WHERE id = ?", (job_id,))
    return JobDetails.model_validate_json(row["details"]) if row else JobDetails()


async def write_details(connection: aiosqlite.Connection, job_id: str, details: JobDetails) -> None:
    await connection.execute(
        "UPDATE jobs SET details = ? WHERE id = ?", (details.model_dump_json(exclude_defaults=True), job_id)
    )


async def forget_last_words(connection: aiosqlite.Connection, job_id: str) -> None:
    """Clears what the previous instruction said and planned; the facts about the pull request remain true."""
    known = await read_details(connection, job_id)
    kept = JobDetails(changes=known.changes, pull_request=known.pull_request, revision=known.revision)
    await write_details(connection, job_id, kept)


async def forget_partial_work(connection: aiosqlite.Connection, job_id: str) -> None:
    """For work that is now in a pull request, or was discarded; a sweep removes its commit from the mirror."""
    await connection.execute("UPDATE jobs SET partial_commit = NULL, partial_files = 0 WHERE id = ?", (job_id,))


async def end_if_idle(connection: aiosqlite.Connection, job_id: str, now: str) -> None:
    """Ends a job that has nothing left in its queue."""
    await connection.execute(
        "UPDATE jobs SET status = CASE WHEN failure IS NULL THEN 'completed' ELSE 'failed' END, finished_at = ? "
        "WHERE id = ? AND status = 'active' AND NOT EXISTS "
        "(SELECT 1 FROM instructions WHERE job_id = jobs.id AND state IN ('queued', 'running'))",
        (now, job_id),
    )


async def check_uploaded(connection: aiosqlite.Connection, files: Sequence[AttachedFile]) -> None:
    """Raises FileNotUploadedError for the first file that has not been uploaded."""
    for index, file in enumerate(files):
        if await fetch_row(connection, "SELECT 1 FROM uploads WHERE id = ?", (file.id,)) is None:
            raise FileNotUploadedError(
                f"files.{index}.id: this file has not been uploaded: upload it with PUT, then send this again"
            )


async def attach(connection: aiosqlite.Connection, instruction: int, files: Sequence[AttachedFile]) -> None:
    """Records the files of a new instruction."""
    await connection.executemany(
        "INSERT INTO attachments (instruction, position, upload_id, name, mimetype) VALUES (?, ?, ?, ?, ?)",
        [(instruction, position, file.id, file.name, file.mimetype) for position, file in enumerate(files)],
    )


async def attachments_until(connection: aiosqlite.Connection, job_id: str, number: int) -> tuple[Attachment, ...]:
    """Returns the files of a job's instructions up to this one, oldest first."""
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


async def read_spent(connection: aiosqlite.Connection, job_id: str) -> Spent:
    row = await fetch_row(
        connection, "SELECT tokens_sent, tokens_answered, money, currency FROM jobs WHERE id = ?", (job_id,)
    )
    return spent_from_row(row) if row else Spent()


async def record_spent(connection: aiosqlite.Connection, job_id: str, spent: Spent, now: datetime) -> None:
    """Adds to the usage of the job, and to that of all jobs today."""
    total = await read_spent(connection, job_id) + spent
    money, currency = (total.money.amount, total.money.currency) if total.money else (0.0, "")
    await connection.execute(
        "UPDATE jobs SET tokens_sent = ?, tokens_answered = ?, money = ?, currency = ? WHERE id = ?",
        (total.sent, total.answered, money, currency, job_id),
    )
    await connection.execute(
        "INSERT INTO spending (day, tokens) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET tokens = tokens + ?",
        (day_of(now), spent.tokens, spent.tokens),
    )
    await connection.execute("DELETE FROM spending WHERE day < ?", (day_of(now - _SPENDING_KEPT),))


def says_no(reply: str) -> bool:
    """Whether a reply says no and nothing else."""
    return " ".join("".join(c if c.isalpha() else " " for c in reply.casefold()).split()) in _NO


def day_of(moment: datetime) -> str:
    """Returns the UTC day as stored in the table."""
    return as_text(moment)[:10]


class QuestionStore:
    """Open questions of active jobs, and the messages that answer them; every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record_question(self, job_id: str, question: Question | None) -> None:
        async with self._database.transaction() as connection:
            kept = question_as_json(question) if question else None
            await connection.execute("UPDATE jobs SET open_question = ? WHERE id = ?", (kept, job_id))

    async def next_reply(self, instruction: Instruction) -> QueuedReply | None:
        """Returns the oldest message that waits behind an instruction, unless it has files."""
        async with self._database.transaction() as connection:
            row = await fetch_row(
                connection,
                "SELECT number, coalesce(words, prompt) AS words, "
                "EXISTS (SELECT 1 FROM attachments WHERE instruction = number) AS has_files "
                "FROM instructions WHERE job_id = ? AND state = 'queued' AND answers IS NULL ORDER BY number LIMIT 1",
                (instruction.job_id,),
            )
            return None if row is None or row["has_files"] else QueuedReply(row["number"], row["words"])

    async def use_reply(self, instruction: Instruction, reply: QueuedReply) -> bool:
        """Makes a message part of the instruction whose question it answers, and closes the question.

        Returns False if the message was stopped in the meantime.
        """
        async with self._database.transaction() as connection:
            cursor = await connection.execute(
                "UPDATE instructions SET answers = ? WHERE number = ? AND state = 'queued' AND answers IS NULL",
                (instruction.number, reply.number),
            )
            if cursor.rowcount:
                await connection.execute("UPDATE jobs SET open_question = NULL WHERE id = ?", (instruction.job_id,))
            return bool(cursor.rowcount)


async def requeue_replies(connection: aiosqlite.Connection) -> None:
    """Requeues the answers to interrupted instructions: each answers the question again, or becomes an instruction."""
    await connection.execute("UPDATE instructions SET answers = NULL WHERE answers IS NOT NULL")


async def end_questions(connection: aiosqlite.Connection, instruction: Instruction) -> None:
    """Closes an instruction's question, and its answers with it."""
    await connection.execute(
        "UPDATE instructions SET answers = NULL, state = iif(state = 'queued', 'done', state) WHERE answers = ?",
        (instruction.number,),
    )
    await connection.execute("UPDATE jobs SET open_question = NULL WHERE id = ?", (instruction.job_id,))
