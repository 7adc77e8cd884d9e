"""The points at which processes are killed are where their names say."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from support.chaos.kill_points import CALLED, SELDOM
from support.chaos.kill_target import WORKERS
from support.chaos.process_group import ProcessGroup
from support.chaos.process_world import until, world
from support.chaos.rounds import new_sqlite

from bot.scheduler.fault_reporter import FaultReporter
from bot.scheduler.file_uploader import FileUploader
from bot.scheduler.history_reader import HistoryReader
from bot.scheduler.home_publisher import HomePublisher
from bot.scheduler.job_poller import JobPoller
from bot.scheduler.outbox import Outbox
from bot.scheduler.request_preparer import RequestPreparer
from bot.scheduler.request_sender import RequestSender

pytestmark = pytest.mark.chaos
A_COMMAND = "listener.record.committed"
PATIENCE = 60.0
"""Seconds at most: each wait ends with its condition. A start takes over twenty on a machine busy with other tests."""


def test_the_kill_points_cover_the_schedulers_workers() -> None:
    workers = (
        RequestPreparer,
        FileUploader,
        RequestSender,
        JobPoller,
        Outbox,
        HomePublisher,
        FaultReporter,
        HistoryReader,
    )
    assert set(WORKERS) == {worker.__name__ for worker in workers}
    assert set(WORKERS.values()) == set(CALLED)
    assert {call for calls in CALLED.values() for call in calls} >= SELDOM


async def test_background_writes_do_not_trigger_a_listeners_kill(
    process_group: ProcessGroup, scratch: Path, seed: int
) -> None:
    """A process records something at its start already, but it must be killed by the command."""
    url = await new_sqlite(scratch, "points")
    async with world(process_group, url, scratch, "Points", idempotent=False, seed=seed) as made:
        target = await made.process_pool.start("a", f"kill:{A_COMMAND}#1")
        assert await until(partial(asyncio.to_thread, _at_work, scratch / f"{target.name}.log"), PATIENCE)
        answer = await made.workspace.people["ana"].command("docs", "/docs", "Fix the guides")
        async with asyncio.timeout(PATIENCE):
            await target.ended.wait()
        assert target.ending["at_point"] == A_COMMAND
        assert (await made.rows("SELECT count(*) FROM requests"))[0][0] == 1
        assert not answer.ok


def _at_work(log: Path) -> bool:
    """Returns whether a process has started all its background tasks."""
    return log.exists() and "Pagehand is at work" in log.read_text()
