"""How an editor's progress comes into the store: the newest state about once a second, however often it is told."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from bot.jobserver.executor.foreign_text import bounded_activity, bounded_plan
from bot.jobserver.models import PlanStep
from bot.jobserver.store.records import ProgressUpdate

logger = logging.getLogger(__name__)
Record = Callable[[ProgressUpdate], Awaitable[None]]
_PAUSE_S = 1.0
_MAX_SESSION_ID = 1000


class RecordedProgress:
    """Implements `editors.interface.Progress`: it only remembers, and `recording` writes."""

    def __init__(self, session: str | None = None) -> None:
        self.session_id = session
        self._pending = ProgressUpdate()
        self._told = asyncio.Event()

    def plan(self, steps: Sequence[PlanStep]) -> None:
        self._tell(replace(self._pending, plan=bounded_plan(steps)))

    def activity(self, title: str) -> None:
        self._tell(replace(self._pending, activity=bounded_activity(title)))

    def session(self, session_id: str) -> None:
        # A longer one is no id: the conversation is given again instead.
        if len(session_id) <= _MAX_SESSION_ID and session_id.isprintable():
            self.session_id = session_id
            self._tell(replace(self._pending, session=session_id))

    @asynccontextmanager
    async def recording(self, record: Record, *, pause: float = _PAUSE_S) -> AsyncIterator[None]:
        """Writes what is told meanwhile, at most once in `pause` seconds, and the rest at the end."""
        writer = asyncio.create_task(self._write_for_ever(record, pause), name="an editor's progress")
        try:
            yield
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            await self._write(record)

    def _tell(self, update: ProgressUpdate) -> None:
        if update != self._pending:
            self._pending = update
            self._told.set()

    async def _write_for_ever(self, record: Record, pause: float) -> None:
        while True:
            await self._told.wait()
            await self._write(record)
            await asyncio.sleep(pause)

    async def _write(self, record: Record) -> None:
        self._told.clear()
        update, self._pending = self._pending, ProgressUpdate()
        if update == ProgressUpdate():
            return
        try:
            await record(update)
        except sqlite3.Error as error:
            logger.warning("an agent's progress could not be recorded: %s", error)
            self._take_back(update)
        except asyncio.CancelledError:
            self._take_back(update)
            raise

    def _take_back(self, update: ProgressUpdate) -> None:
        self._pending = _later(update, self._pending)
        self._told.set()


def _later(first: ProgressUpdate, second: ProgressUpdate) -> ProgressUpdate:
    """Returns both as one update; what was told later counts."""
    return ProgressUpdate(
        plan=first.plan if second.plan is None else second.plan,
        activity=first.activity if second.activity is None else second.activity,
        session=first.session if second.session is None else second.session,
    )
