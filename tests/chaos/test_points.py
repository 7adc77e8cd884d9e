"""Processes are killed in each of the scheduler's workers."""

from support.chaos.kill_points import CALLED, SELDOM
from support.chaos.kill_target import WORKERS

from bot.scheduler.file_uploader import FileUploader
from bot.scheduler.history_reader import HistoryReader
from bot.scheduler.home_publisher import HomePublisher
from bot.scheduler.job_poller import JobPoller
from bot.scheduler.outbox import Outbox
from bot.scheduler.request_preparer import RequestPreparer
from bot.scheduler.request_sender import RequestSender


def test_the_kill_points_cover_the_schedulers_workers() -> None:
    workers = (
        RequestPreparer,
        FileUploader,
        RequestSender,
        JobPoller,
        Outbox,
        HomePublisher,
        HistoryReader,
    )
    assert set(WORKERS) == {worker.__name__ for worker in workers}
    assert set(WORKERS.values()) == set(CALLED)
    assert {call for calls in CALLED.values() for call in calls} >= SELDOM
