"""Shows an agent's question in its job, and waits for the message that answers it."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable

from bot.jobserver.pipeline.foreign_text import Mask, safe_question
from bot.jobserver.store.job_rows import QuestionStore
from bot.jobserver.store.records import Instruction, Question

logger = logging.getLogger(__name__)


class Asking:
    """Asks for all jobs. `time_limit`: seconds to wait for an answer; meanwhile, the job occupies a slot."""

    def __init__(self, records: QuestionStore, mask: Mask, *, time_limit: float) -> None:
        self._records = records
        self._mask = mask
        self._time_limit = time_limit
        self._arrived: dict[str, asyncio.Event] = {}

    def arrived(self, job_id: str) -> None:
        """To be called when a job receives a message."""
        if event := self._arrived.get(job_id):
            event.set()

    async def ask(self, instruction: Instruction, question: Question, is_answer: Callable[[str], bool]) -> str | None:
        """Returns the answer; None if none came in time, or if the next message is a new instruction.

        The answer then belongs to the instruction; a restart before the instruction has ended requeues it. The question
        stays with the job until it is answered or the instruction ends.
        """
        try:
            return await self._ask(instruction, safe_question(question, self._mask), is_answer)
        except TimeoutError:
            return None
        except sqlite3.Error as error:
            logger.warning("job %s: a question could not be asked: %s", instruction.job_id, error)
            return None

    async def _ask(self, instruction: Instruction, question: Question, is_answer: Callable[[str], bool]) -> str | None:
        arrived = self._arrived[instruction.job_id] = asyncio.Event()
        try:
            await self._records.record_question(instruction.job_id, question)
            async with asyncio.timeout(self._time_limit):
                while True:
                    arrived.clear()
                    reply = await self._records.next_reply(instruction)
                    if reply is None:
                        await arrived.wait()
                    elif not is_answer(reply.words):
                        return None
                    elif await self._records.use_reply(instruction, reply):
                        return reply.words
        finally:
            del self._arrived[instruction.job_id]
