"""Questions that are open while their job is at work, and the messages that answer them."""

import aiosqlite

from bot.jobserver.questions import Question
from bot.jobserver.store.database import Database
from bot.jobserver.store.records import Instruction, QueuedReply, question_as_json


class QuestionStore:
    """Implements `executor.asking.QuestionRecords`; every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record_question(self, job_id: str, question: Question | None) -> None:
        async with self._database.transaction() as connection:
            kept = question_as_json(question) if question else None
            await connection.execute("UPDATE jobs SET open_question = ? WHERE id = ?", (kept, job_id))

    async def next_reply(self, instruction: Instruction) -> QueuedReply | None:
        """Returns the oldest message that waits behind an instruction, unless files came with it."""
        async with self._database.transaction() as connection:
            cursor = await connection.execute(
                "SELECT number, prompt, EXISTS (SELECT 1 FROM attachments WHERE instruction = number) AS has_files "
                "FROM instructions WHERE job_id = ? AND state = 'queued' AND answers IS NULL ORDER BY number LIMIT 1",
                (instruction.job_id,),
            )
            row = await cursor.fetchone()
            return None if row is None or row["has_files"] else QueuedReply(row["number"], row["prompt"])

    async def use_reply(self, instruction: Instruction, reply: QueuedReply) -> bool:
        """Makes a message part of the instruction whose question it answers, which is not open any more; False where
        it was stopped meanwhile.
        """
        async with self._database.transaction() as connection:
            cursor = await connection.execute(
                "UPDATE instructions SET answers = ? WHERE number = ? AND state = 'queued' AND answers IS NULL",
                (instruction.number, reply.number),
            )
            if cursor.rowcount:
                await connection.execute("UPDATE jobs SET open_question = NULL WHERE id = ?", (instruction.job_id,))
            return bool(cursor.rowcount)


async def give_back_replies(connection: aiosqlite.Connection) -> None:
    """Has what answered an instruction that was interrupted wait again: it will be asked anew, or be an instruction."""
    await connection.execute("UPDATE instructions SET answers = NULL WHERE answers IS NOT NULL")


async def end_questions(connection: aiosqlite.Connection, instruction: Instruction) -> None:
    """Ends what was asked and answered with the instruction itself."""
    await connection.execute(
        "UPDATE instructions SET answers = NULL, state = iif(state = 'queued', 'done', state) WHERE answers = ?",
        (instruction.number,),
    )
    await connection.execute("UPDATE jobs SET open_question = NULL WHERE id = ?", (instruction.job_id,))
