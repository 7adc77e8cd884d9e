"""Stores an editor's progress: the newest state, at most about once a second, however often it is reported."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.jobapi.models import PlanStep
from bot.jobserver.pipeline.foreign_text import bounded_activity, bounded_plan
from bot.jobserver.store.records import ProgressUpdate, Question
from bot.jobserver.usage import Spent

logger = logging.getLogger(__name__)
Record = Callable[[ProgressUpdate], Awaitable[None]]
Ask = Callable[[Question, Callable[[str], bool]], Awaitable[str | None]]
_PAUSE_S = 1.0
_MAX_SESSION_ID = 1000


@dataclass
class _Unwritten:
    """What was reported since the last write, unprocessed: an agent may report thousands of times per second."""

    plan: Sequence[PlanStep] | None = None
    activity: str | None = None
    session: str | None = None
    spent: Spent = field(default_factory=Spent)

    def as_update(self) -> ProgressUpdate:
        return ProgressUpdate(
            plan=None if self.plan is None else bounded_plan(self.plan),
            activity=None if self.activity is None else bounded_activity(self.activity),
            session=self.session,
            spent=None if self.spent == Spent() else self.spent,
        )

    def fill_from(self, earlier: "_Unwritten") -> None:
        """Takes over earlier values that have not been reported again."""
        self.spent = earlier.spent + self.spent
        self.plan = earlier.plan if self.plan is None else self.plan
        self.activity = earlier.activity if self.activity is None else self.activity
        self.session = earlier.session if self.session is None else self.session


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
        self._unwritten = _Unwritten()
        self._has_news = asyncio.Event()

    def plan(self, steps: Sequence[PlanStep]) -> None:
        self._unwritten.plan = steps
        self._has_news.set()

    def activity(self, title: str) -> None:
        self._unwritten.activity = title
        self._has_news.set()

    def session(self, session_id: str) -> None:
        # Anything longer is not an id: the conversation is repeated instead.
        if len(session_id) <= _MAX_SESSION_ID and session_id.isprintable():
            self.session_id = self._unwritten.session = session_id
            self._has_news.set()

    def spent(self, spent: Spent) -> None:
        if spent != Spent():
            self.total += spent
            self._unwritten.spent += spent
            self._has_news.set()
            if self._take is not None:
                self._take(spent)

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
        unwritten, self._unwritten = self._unwritten, _Unwritten()
        writing = asyncio.ensure_future(record(unwritten.as_update()))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait({writing})  # otherwise the usage could be written twice
            raise
        except sqlite3.Error as error:
            logger.warning("an agent's progress could not be recorded: %s", error)
        finally:
            if not writing.done() or writing.cancelled() or writing.exception() is not None:
                self._take_back(unwritten)

    def _take_back(self, unwritten: _Unwritten) -> None:
        self._unwritten.fill_from(unwritten)
        self._has_news.set()
