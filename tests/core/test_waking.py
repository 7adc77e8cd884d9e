"""Who is woken by whose commits: those whom that may have left work for, since an empty claim is a transaction, too."""

import pytest
from support.worlds.core_world import CoreWorld

from bot.domain.poll_pace import Polling
from bot.domain.projects import Project, Projects
from bot.scheduler.scheduler import Scheduler, SchedulerEdges, SchedulerSettings

CORE = {"request preparer", "request sender", "outbox"}


@pytest.fixture
async def scheduler(world: CoreWorld) -> Scheduler:
    settings = SchedulerSettings(
        "one", 20.0, Projects((Project("docs"),)), world.rules, Polling(), max_polls=5, keep_days=90.0
    )
    nobody: object = None
    edges = SchedulerEdges(world.store, world.job_api, world.chat, world.people, world.reading.ports, nobody)  # type: ignore[arg-type]  # Homes are not shown here
    return Scheduler(settings, edges, parts=tuple)


@pytest.mark.parametrize(
    ("name", "woken"),
    [
        ("request preparer", {*CORE, "file uploader"}),
        ("file uploader", CORE),
        ("request sender", CORE),
        ("job poller", CORE),
        ("outbox", CORE),
    ],
)
async def test_a_workers_commit_wakes_those_it_may_have_left_work_for(
    scheduler: Scheduler, name: str, woken: set[str]
) -> None:
    worker = next(worker for worker in scheduler.workers if worker.name == name)
    worker._settings.on_commit()
    assert {worker.name for worker in scheduler.workers if worker._woken.is_set()} == woken


async def test_what_somebody_asks_for_wakes_all_but_the_polls(scheduler: Scheduler) -> None:
    """The Home that they opened, too."""
    scheduler.wake_senders()
    asleep = {worker.name for worker in scheduler.workers if not worker._woken.is_set()}
    assert asleep == {"job poller"}
