"""The queue of instructions, with their progress and outcomes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import aiosqlite

from bot.jobapi.models import JobDetails
from bot.jobserver.errors import BudgetUsedUpError
from bot.jobserver.store.database import Database, fetch_row
from bot.jobserver.store.records import (
    Attachment,
    EarlierInstruction,
    Instruction,
    InstructionBacklog,
    Outcome,
    ProgressUpdate,
    Question,
    QueuedReply,
    as_text,
    branch_name,
    end_if_idle,
    forget_last_words,
    forget_partial_work,
    read_details,
    requester_from_row,
    says_no,
    spent_from_row,
    write_details,
)
from bot.jobserver.usage import Spent

_WAITING = "state IN ('queued', 'running')"
"""Worded exactly as in the index, or SQLite would not use it."""
_LONGEST_CONVERSATION = 50
"""The number of earlier instructions that an agent gets."""
_MOST_ATTACHMENTS = 100
"""How many of a job's files, the newest, an editor gets."""
_SPENDING_KEPT = timedelta(days=2)
_LONGEST_ANSWER = 4000
"""Characters of an answer that are stored for the conversation."""


class InstructionQueue:
    """Every method is one transaction."""

    def __init__(self, database: Database, *, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now

    async def requeue_interrupted(self) -> list[str]:
        """Requeues the instructions that were running when the server stopped.

        Returns the ids of all jobs with work, the one that has waited longest first.
        """
        async with self._database.transaction() as connection:
            await connection.execute(
                f"UPDATE instructions SET state = 'queued' WHERE {_WAITING} AND state = 'running'"  # noqa: S608 - ours
            )
            # Each answers the question again, or becomes an instruction.
            await connection.execute("UPDATE instructions SET answers = NULL WHERE answers IS NOT NULL")
            rows = await connection.execute_fetchall(
                f"SELECT job_id FROM instructions WHERE {_WAITING} GROUP BY job_id ORDER BY min(number)"  # noqa: S608
            )
            return [row["job_id"] for row in rows]

    async def backlog(self) -> InstructionBacklog:
        """Returns what has not ended."""
        rows = await self._database.rows(
            "SELECT state, count(*) AS count, min(created_at) AS since "  # noqa: S608 - ours
            f"FROM instructions WHERE {_WAITING} GROUP BY state"
        )
        counts = {row["state"]: row["count"] for row in rows}
        since = [datetime.fromisoformat(row["since"]) for row in rows if row["state"] == "queued"]
        oldest = max(((self._now() - each).total_seconds() for each in since), default=0.0)
        return InstructionBacklog(counts.get("queued", 0), counts.get("running", 0), max(oldest, 0.0))

    async def next_instruction(self, job_id: str) -> Instruction | None:
        """Marks the job's oldest queued instruction as running, counts the attempt, and returns it."""
        async with self._database.transaction() as connection:
            row = await fetch_row(
                connection,
                "SELECT instructions.*, branch, session, partial_commit "
                "FROM instructions JOIN jobs ON jobs.id = job_id "
                "WHERE job_id = ? AND state = 'queued' ORDER BY number LIMIT 1",
                (job_id,),
            )
            if row is None:
                return None
            await connection.execute(
                "UPDATE instructions SET state = 'running', attempts = attempts + 1 WHERE number = ?", (row["number"],)
            )
            if row["attempts"] == 0:
                await forget_last_words(connection, job_id)
            details = await read_details(connection, job_id)
            taken = _from_row(row, details, await _conversation(connection, job_id, row["number"]))
            return replace(taken, attachments=await _attachments_until(connection, job_id, row["number"]))

    async def release(self, instruction: Instruction) -> None:
        """Requeues an instruction that an orderly stop interrupted; the attempt does not count."""
        await self._database.execute(
            "UPDATE instructions SET state = 'queued', attempts = attempts - 1 WHERE number = ? AND state = 'running'",
            (instruction.number,),
        )

    async def is_stopped(self, instruction: Instruction) -> bool:
        """Whether somebody has cancelled the instruction."""
        statement = "SELECT 1 FROM instructions WHERE number = ? AND stop_reason IS NOT NULL"
        return bool(await self._database.rows(statement, (instruction.number,)))

    async def record_progress(self, job_id: str, update: ProgressUpdate) -> None:
        async with self._database.transaction() as connection:
            details = await read_details(connection, job_id)
            changed = {name: value for name in ("plan", "activity") if (value := getattr(update, name)) is not None}
            await write_details(connection, job_id, details.model_copy(update=changed))
            await connection.execute(
                "UPDATE jobs SET session = coalesce(?, session) WHERE id = ?", (update.session, job_id)
            )
            if update.spent != Spent():
                await self._record_spent(connection, job_id, update.spent)

    async def _record_spent(self, connection: aiosqlite.Connection, job_id: str, spent: Spent) -> None:
        """Adds to the usage of the job, and to that of all jobs today."""
        total, now = await _read_spent(connection, job_id) + spent, self._now()
        money, currency = (total.money.amount, total.money.currency) if total.money else (0.0, "")
        await connection.execute(
            "UPDATE jobs SET tokens_sent = ?, tokens_answered = ?, money = ?, currency = ? WHERE id = ?",
            (total.sent, total.answered, money, currency, job_id),
        )
        await connection.execute(
            "INSERT INTO spending (day, tokens) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET tokens = tokens + ?",
            (_day_of(now), spent.tokens, spent.tokens),
        )
        await connection.execute("DELETE FROM spending WHERE day < ?", (_day_of(now - _SPENDING_KEPT),))

    async def spent(self, job_id: str) -> Spent:
        """Returns a job's use of its model."""
        async with self._database.transaction() as connection:
            return await _read_spent(connection, job_id)

    async def spent_since_asked(self, instruction: Instruction) -> int:
        """Returns the tokens its job has used since a person last let it continue.

        A message sent after the question lets the job continue, unless it says no; earlier usage no longer counts.
        """
        async with self._database.transaction() as connection:
            row = await fetch_row(
                connection,
                "SELECT tokens_sent + tokens_answered AS tokens, tokens_agreed, coalesce(words, prompt) AS words, "
                "asked_at < instructions.created_at AS is_reply "
                "FROM jobs JOIN instructions ON job_id = jobs.id WHERE number = ?",
                (instruction.number,),
            )
            if row is None:
                return 0
            if not row["is_reply"] or says_no(row["words"]):
                return int(row["tokens"] - row["tokens_agreed"])
            await connection.execute(
                "UPDATE jobs SET tokens_agreed = ?, asked_at = NULL WHERE id = ?", (row["tokens"], instruction.job_id)
            )
            return 0

    async def record_budget_end(self, job_id: str, error: BudgetUsedUpError) -> None:
        """Records that a person was asked, and drops a session that has not received the instruction."""
        async with self._database.transaction() as connection:
            if error.question:
                now = as_text(self._now())
                await connection.execute("UPDATE jobs SET asked_at = coalesce(asked_at, ?) WHERE id = ?", (now, job_id))
            if not error.was_heard:
                await connection.execute("UPDATE jobs SET session = NULL WHERE id = ?", (job_id,))

    async def tokens_today(self) -> int:
        """Returns the tokens that all jobs have used today, in UTC."""
        rows = await self._database.rows("SELECT tokens FROM spending WHERE day = ?", (_day_of(self._now()),))
        return sum(row["tokens"] for row in rows)

    async def record_question(self, job_id: str, question: Question | None) -> None:
        asked = question and JobDetails(question=question.text, question_fields=question.fields)
        kept = asked and asked.model_dump_json(exclude_defaults=True)
        await self._database.execute("UPDATE jobs SET open_question = ? WHERE id = ?", (kept, job_id))

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

    async def use_next_branch(self, instruction: Instruction) -> Instruction:
        """Gives the job its next branch, and returns the instruction with it."""
        async with self._database.transaction() as connection:
            row = await fetch_row(connection, "SELECT branch_number FROM jobs WHERE id = ?", (instruction.job_id,))
            number = 1 + (row["branch_number"] if row else 0)
            branch = branch_name(instruction.job_id, number)
            await connection.execute(
                "UPDATE jobs SET branch_number = ?, branch = ? WHERE id = ?", (number, branch, instruction.job_id)
            )
        return replace(instruction, branch=branch)

    async def record_answer(self, instruction: Instruction, details: JobDetails) -> None:
        """Records what the editor said before the push, in case a restart has to report it."""
        async with self._database.transaction() as connection:
            known = await read_details(connection, instruction.job_id)
            words = ("summary", "question", "question_fields")
            updated = known.model_copy(update={name: getattr(details, name) for name in words})
            await write_details(connection, instruction.job_id, updated)

    async def record_pushed(self, instruction: Instruction, commit: str) -> None:
        """Records an instruction's commit; from then on it is not executed again."""
        await self._database.execute(
            "UPDATE instructions SET commit_id = ? WHERE number = ?", (commit, instruction.number)
        )

    async def record_partial(self, job_id: str, commit: str | None, files: int = 0) -> None:
        """Records the commit that keeps a failed instruction's work; None if there is none."""
        await self._database.execute(
            "UPDATE jobs SET partial_commit = ?, partial_files = ? WHERE id = ?", (commit, files, job_id)
        )

    async def finish(self, instruction: Instruction, outcome: Outcome) -> None:
        """Records an instruction's outcome; if the queue is empty, the job ends too.

        The success of the next queued instruction does not hide the failure of this one. An instruction that somebody
        stopped has not failed, whatever its outcome.
        """
        async with self._database.transaction() as connection:
            ended = await _final_outcome(connection, instruction, outcome)
            state = "failed" if ended.failure else "stopped" if ended is not outcome else "done"
            said, reason = ended.details, ended.failure or ended.details.reason
            answer = "\n\n".join(filter(None, (said.summary, said.question, reason and f"({reason})")))
            await connection.execute(
                "UPDATE instructions SET state = ?, answer = ? WHERE number = ?",
                (state, answer[:_LONGEST_ANSWER], instruction.number),
            )
            await connection.execute(
                "UPDATE jobs SET failure = coalesce(?, failure), pr_branch = iif(? IS NULL, pr_branch, ?), "
                "pr_link = coalesce(?, pr_link) WHERE id = ?",
                (ended.failure, ended.pr_link, instruction.branch, ended.pr_link, instruction.job_id),
            )
            if state == "done":
                await forget_partial_work(connection, instruction.job_id)
            known = await read_details(connection, instruction.job_id)
            await write_details(connection, instruction.job_id, _final_details(known, ended.details))
            await connection.execute(
                "UPDATE instructions SET answers = NULL, state = iif(state = 'queued', 'done', state) "
                "WHERE answers = ?",
                (instruction.number,),
            )
            await connection.execute("UPDATE jobs SET open_question = NULL WHERE id = ?", (instruction.job_id,))
            await end_if_idle(connection, instruction.job_id, as_text(self._now()))


async def _conversation(connection: aiosqlite.Connection, job_id: str, number: int) -> tuple[EarlierInstruction, ...]:
    rows = await connection.execute_fetchall(
        "SELECT prompt, answer, coalesce(words, prompt) AS words FROM instructions "
        "WHERE job_id = ? AND number < ? ORDER BY number DESC LIMIT ?",
        (job_id, number, _LONGEST_CONVERSATION),
    )
    return tuple(EarlierInstruction(row["prompt"], row["answer"], row["words"]) for row in reversed(list(rows)))


async def _final_outcome(connection: aiosqlite.Connection, instruction: Instruction, outcome: Outcome) -> Outcome:
    """Returns the outcome; for a stopped instruction, one that says who stopped it and whether it was pushed."""
    row = await fetch_row(
        connection, "SELECT stop_reason, commit_id FROM instructions WHERE number = ?", (instruction.number,)
    )
    if row is None or row["stop_reason"] is None:
        return outcome
    is_pushed = outcome.commit or row["commit_id"]
    reason = f"{row['stop_reason']}, after the change had been pushed" if is_pushed else row["stop_reason"]
    return replace(outcome, failure=None, details=outcome.details.model_copy(update={"reason": reason}))


def _from_row(row: aiosqlite.Row, details: JobDetails, conversation: tuple[EarlierInstruction, ...]) -> Instruction:
    return Instruction(
        number=row["number"],
        job_id=row["job_id"],
        branch=row["branch"],
        prompt=row["prompt"],
        words=row["prompt"] if row["words"] is None else row["words"],
        requester=requester_from_row(row),
        conversation=conversation,
        session=row["session"],
        partial=row["partial_commit"],
        attempts=row["attempts"] + 1,
        commit=row["commit_id"],
        summary=details.summary or "",
        question=details.question or "",
        question_fields=details.question_fields,
        request_id=row["request_id"],
    )


def _final_details(known: JobDetails, new: JobDetails) -> JobDetails:
    kept = {name: getattr(new, name) or getattr(known, name) for name in ("changes", "pull_request", "revision")}
    return new.model_copy(update={"plan": known.plan, **kept})


def _day_of(moment: datetime) -> str:
    """Returns the UTC day as stored in the table."""
    return as_text(moment)[:10]


async def _read_spent(connection: aiosqlite.Connection, job_id: str) -> Spent:
    row = await fetch_row(
        connection, "SELECT tokens_sent, tokens_answered, money, currency FROM jobs WHERE id = ?", (job_id,)
    )
    return spent_from_row(row) if row else Spent()


async def _attachments_until(connection: aiosqlite.Connection, job_id: str, number: int) -> tuple[Attachment, ...]:
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
