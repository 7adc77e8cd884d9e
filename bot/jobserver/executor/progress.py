"""How an editor's progress comes into the store: the newest state about once a second, however often it is told."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.jobserver.executor.foreign_text import bounded_activity, bounded_plan
from bot.jobserver.models import PlanStep
from bot.jobserver.store.records import ProgressUpdate

logger = logging.getLogger(__name__)
Record = Callable[[ProgressUpdate], Awaitable[None]]
_PAUSE_S = 1.0
_MAX_SESSION_ID = 1000


@dataclass
class _Told:
    """What was told since the last write, as it was told: an agent may tell thousands of times in a second."""

    plan: Sequence[PlanStep] | None = None
    activity: str | None = None
    session: str | None = None

    def as_update(self) -> ProgressUpdate:
        return ProgressUpdate(
            plan=None if self.plan is None else bounded_plan(self.plan),
            activity=None if self.activity is None else bounded_activity(self.activity),
            session=self.session,
        )

    def fill_from(self, earlier: "_Told") -> None:
        """Takes over what was not told anew."""
        self.plan = earlier.plan if self.plan is None else self.plan
        self.activity = earlier.activity if self.activity is None else self.activity
        self.session = earlier.session if self.session is None else self.session


class RecordedProgress:
    """Implements `editors.interface.Progress`: it only remembers, and `recording` writes."""

    def __init__(self, session: str | None = None) -> None:
        self.session_id = session
        self._told = _Told()
        self._has_news = asyncio.Event()

    def plan(self, steps: Sequence[PlanStep]) -> None:
        self._told.plan = steps
        self._has_news.set()

    def activity(self, title: str) -> None:
        self._told.activity = title
        self._has_news.set()

    def session(self, session_id: str) -> None:
        # A longer one is no id: the conversation is given again instead.
        if len(session_id) <= _MAX_SESSION_ID and session_id.isprintable():
            self.session_id = self._told.session = session_id
            self._has_news.set()

    @asynccontextmanager
    async def recording(self, record: Record, *, pause: float = _PAUSE_S) -> AsyncIterator[None]:
        """Writes what is told meanwhile, at most once in `pause` seconds, and the rest at the end."""
        writer = asyncio.create_task(self._write_for_ever(record, pause), name="an editor's progress")
        try:
            yield
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            if self._has_news.is_set():
                await self._write(record)

    async def _write_for_ever(self, record: Record, pause: float) -> None:
        while True:
            await self._has_news.wait()
            await self._write(record)
            await asyncio.sleep(pause)

    async def _write(self, record: Record) -> None:
        self._has_news.clear()
        told, self._told = self._told, _Told()
        try:
            await record(told.as_update())
        except sqlite3.Error as error:
            logger.warning("an agent's progress could not be recorded: %s", error)
            self._take_back(told)
        except asyncio.CancelledError:
            self._take_back(told)
            raise

    def _take_back(self, told: _Told) -> None:
        self._told.fill_from(told)
        self._has_news.set()
