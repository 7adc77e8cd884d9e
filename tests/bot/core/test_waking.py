"""Which commits wake which workers: only those that may have work, since an empty claim is a transaction, too."""

import math
from dataclasses import replace
from typing import Any

import pytest
from support.worlds.core_world import ANA, CoreWorld

from bot.domain.jobs.poll_pace import Polling
from bot.domain.projects import Project, Projects
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import WayIn
from bot.scheduler.scheduler import Scheduler, SchedulerEdges, SchedulerSettings
from bot.scheduler.settings import SchedulerVariables
from bot.scheduler.worker import ANYTHING, DueWork


@pytest.fixture
async def scheduler(world: CoreWorld) -> Scheduler:
    settings = SchedulerSettings(
        "one", 20.0, Projects((Project("docs"),)), world.rules, Polling(), max_polls=5, variables=SchedulerVariables()
    )
    nobody: Any = None  # Homes are not shown here, and no history is read
    reading, always = world.reading.ports, lambda: math.inf
    edges = SchedulerEdges(
        world.store, world.job_api, world.chat, world.people, reading, nobody, always, nobody, nobody
    )
    return Scheduler(settings, edges, parts=tuple)


def woken(scheduler: Scheduler) -> set[str]:
    return {worker.name for worker in scheduler.workers if worker._woken.is_set()}


@pytest.mark.parametrize(
    ("left", "name"),
    [
        (DueWork.PREPARE, "request preparer"),
        (DueWork.UPLOAD, "file uploader"),
        (DueWork.SEND, "request sender"),
        (DueWork.DELIVER, "outbox"),
    ],
)
async def test_a_workers_commit_wakes_the_workers_it_left_work_for(
    scheduler: Scheduler, left: DueWork, name: str
) -> None:
    for worker in scheduler.workers:
        worker._settings.on_commit(frozenset({left}))
        assert woken(scheduler) == {name}


async def test_a_persons_request_wakes_the_first_workers(scheduler: Scheduler) -> None:
    """Their Home is updated, too; nothing is sent before it is prepared."""
    scheduler.wake_senders()
    assert woken(scheduler) == {"request preparer", "outbox", "home publisher"}


async def test_each_step_of_a_start_wakes_the_next_worker(world: CoreWorld) -> None:
    """And no other: from the request to the card, the job, and the card with the job."""
    left = list[frozenset[DueWork]]()
    settings = replace(world.request_preparer._settings, on_commit=left.append)
    for worker in world.loops:
        worker._settings = settings
    await world.service.start(NewJob(ANA, "C1", "Do it", "k", WayIn.COMMAND))
    await world.settle()
    deliver, send = DueWork.DELIVER, DueWork.SEND
    assert left == [ANYTHING, ANYTHING, {send, deliver}, {deliver}, {deliver}]
