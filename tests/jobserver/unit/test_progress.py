"""How progress is saved: the newest, rarely, and never at the cost of the work."""

import asyncio
import sqlite3

from bot.jobapi.models import PlanStep
from bot.jobserver.pipeline.progress import RecordedProgress
from bot.jobserver.store.records import ProgressUpdate
from bot.jobserver.usage import Money, Spent

HOUR = 3600.0
READ, WRITE = (PlanStep(title="Read"),), (PlanStep(title="Write"),)


class Recorder:
    """Records updates; the first `failures` of them cannot be written."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.updates: list[ProgressUpdate] = []
        self.recorded = asyncio.Event()

    async def __call__(self, update: ProgressUpdate) -> None:
        if self.failures:
            self.failures -= 1
            raise sqlite3.OperationalError("database is locked")
        self.updates.append(update)
        self.recorded.set()


async def test_the_first_progress_is_saved_at_once_and_the_rest_at_the_end() -> None:
    recorder, progress = Recorder(), RecordedProgress()
    async with progress.recording(recorder, pause=HOUR):
        progress.session("s-1")
        await asyncio.wait_for(recorder.recorded.wait(), 10)
        for number in range(1000):
            progress.plan(READ)
            progress.activity(f"page {number}")
            await asyncio.sleep(0)
        progress.plan(WRITE)
    assert recorder.updates == [ProgressUpdate(session="s-1"), ProgressUpdate(plan=WRITE, activity="page 999")]


async def test_unsaved_progress_is_saved_with_the_next() -> None:
    recorder, progress = Recorder(failures=2), RecordedProgress("s-0")
    async with progress.recording(recorder, pause=0.001):
        progress.session("s-1")
        progress.plan(READ)
        await asyncio.wait_for(recorder.recorded.wait(), 10)
    assert recorder.updates == [ProgressUpdate(plan=READ, session="s-1")]
    assert progress.session_id == "s-1"


async def test_usage_is_added_up_and_saved_once() -> None:
    """Even if a save is in progress at the end."""
    updates: list[ProgressUpdate] = []
    began, may_end = asyncio.Event(), asyncio.Event()

    async def slow(update: ProgressUpdate) -> None:
        began.set()
        await may_end.wait()
        updates.append(update)

    progress = RecordedProgress()
    async with progress.recording(slow, pause=0):
        progress.spent(Spent(10, 1))
        await asyncio.wait_for(began.wait(), 10)
        progress.spent(Spent(20, 2))
        progress.spent(Spent(30, 3, Money(0.5, "USD")))
        asyncio.get_running_loop().call_soon(may_end.set)
    assert [update.spent for update in updates] == [Spent(10, 1), Spent(50, 5, Money(0.5, "USD"))]
    assert progress.total == Spent(60, 6, Money(0.5, "USD"))


async def test_without_progress_nothing_is_saved_and_an_invalid_id_is_no_session() -> None:
    recorder, progress = Recorder(), RecordedProgress()
    async with progress.recording(recorder):
        progress.session("x" * 5000)
        progress.session("two\nlines")
    assert (recorder.updates, progress.session_id) == ([], None)
