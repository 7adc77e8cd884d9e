"""What an editor reports while it works: progress, of which the newest state is stored, and questions to people."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from bot.errors import StoreError
from bot.jobapi.models import PlanStep
from bot.jobserver.errors import LeaseLostError
from bot.jobserver.pipeline.descriptions import MAX_QUESTION, Mask
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.records import Instruction, ProgressUpdate, Question
from bot.jobserver.text import shortened
from bot.jobserver.usage import Spent

logger = logging.getLogger(__name__)
Record = Callable[[ProgressUpdate], Awaitable[None]]
Ask = Callable[[Question, Callable[[str], bool]], Awaitable[str | None]]
_PAUSE_S = 1.0
_MAX_SESSION_ID = 1000


class RecordedProgress:
    """Implements `editors.interface.EditProgress`: the methods only collect, and `recording` writes.

    `take` is called at once with each usage; `ask` asks people.
    """

    def __init__(
        self, session: str | None = None, take: Callable[[Spent], None] | None = None, ask: Ask | None = None
    ) -> None:
        self.session_id = session
        self._ask = ask
        self.total = Spent()
        self._take = take
        self._unwritten = ProgressUpdate()
        self._has_news = asyncio.Event()

    def plan(self, steps: Sequence[PlanStep]) -> None:
        self._report(plan=tuple(steps))

    def activity(self, title: str) -> None:
        self._report(activity=title)

    def session(self, session_id: str) -> None:
        # Anything longer is not an id: the conversation is repeated instead.
        if len(session_id) <= _MAX_SESSION_ID and session_id.isprintable():
            self.session_id = session_id
            self._report(session=session_id)

    def spent(self, spent: Spent) -> None:
        if spent != Spent():
            self.total += spent
            self._report(spent=self._unwritten.spent + spent)
            if self._take is not None:
                self._take(spent)

    def _report(self, **news: Any) -> None:
        self._unwritten = replace(self._unwritten, **news)
        self._has_news.set()

    async def ask(self, question: Question, is_answer: Callable[[str], bool]) -> str | None:
        return await self._ask(question, is_answer) if self._ask else None

    @asynccontextmanager
    async def recording(self, record: Record, *, pause: float = _PAUSE_S) -> AsyncIterator[None]:
        """Writes the progress within the block, at most once every `pause` seconds, and the rest at the end."""
        writer = asyncio.create_task(self._write_repeatedly(record, pause), name="an editor's progress")
        try:
            yield
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            if self._has_news.is_set():
                await self._write(record)

    async def _write_repeatedly(self, record: Record, pause: float) -> None:
        while True:
            await self._has_news.wait()
            await self._write(record)
            await asyncio.sleep(pause)

    async def _write(self, record: Record) -> None:
        self._has_news.clear()
        unwritten, self._unwritten = self._unwritten, ProgressUpdate()
        writing = asyncio.ensure_future(record(unwritten))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps nobody else asks
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait({writing})  # otherwise the usage could be written twice
            raise
        except StoreError as error:
            logger.warning("an agent's progress could not be recorded: %s", error)
        finally:
            if not writing.done() or writing.cancelled() or writing.exception() is not None:
                newer = {name: value for name, value in vars(self._unwritten).items() if value is not None}
                self._unwritten = replace(unwritten, **{**newer, "spent": unwritten.spent + self._unwritten.spent})
                self._has_news.set()


class Asking:
    """Asks for all jobs. `time_limit`: seconds to wait for an answer; meanwhile, the job occupies a slot."""

    def __init__(self, records: InstructionQueue, mask: Mask, *, time_limit: float) -> None:
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
        fields = tuple(field.with_words(self._mask) for field in question.fields)
        masked = Question(shortened(self._mask(question.text), MAX_QUESTION), fields)
        try:
            return await self._ask(instruction, masked, is_answer)
        except TimeoutError:
            return None
        except (StoreError, LeaseLostError) as error:
            logger.warning("job %s: a question could not be asked: %s", instruction.job_id, error)
            return None

    async def _ask(self, instruction: Instruction, question: Question, is_answer: Callable[[str], bool]) -> str | None:
        arrived = self._arrived[instruction.job_id] = asyncio.Event()
        try:
            await self._records.record_question(instruction, question)
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
