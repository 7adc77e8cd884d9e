"""Several projects: each job API is a separate part of the health."""

from support.worlds.core_world import CoreWorld

from bot.domain.jobs.job import Problem
from bot.errors import JobApiUnreachable, NoSuchProject
from bot.runtime.health import ComponentStatus


def statuses(world: CoreWorld, project: str) -> list[ComponentStatus]:
    return [worker.job_api_status(project) for worker in (world.request_sender, world.job_poller)]


async def test_one_projects_outage_affects_neither_workers_nor_other_projects(world: CoreWorld) -> None:
    """Its own part of the health reports the outage with the project's name, and its end."""
    ts = await world.started()
    world.job_api.faults = [JobApiUnreachable("The job API cannot be reached: down.")] * 50
    await world.reply(ts, "More", "5.0", wait=120)
    assert world.request_sender.status().failing_seconds == world.job_poller.status().failing_seconds == 0
    for status in statuses(world, "docs"):
        assert (status.name, status.reason) == ("job API of docs", "The job API cannot be reached: down.")
        assert status.failing_seconds > 60
    assert [status.failing_seconds for status in statuses(world, "other")] == [0, 0]
    world.job_api.faults = []
    await world.pass_time(400)
    assert [status.failing_seconds for status in statuses(world, "docs")] == [0, 0]


async def test_a_job_whose_project_left_the_settings_is_reported_and_waits(world: CoreWorld) -> None:
    """Its thread is told the reason once; the health is not affected by an operator's decision."""
    ts = await world.started()
    gone = NoSuchProject("Pagehand's settings do not have this project any more.")
    world.job_api.faults_of["get"] = [gone] * 1_000
    await world.pass_time(400)
    assert world.job_api.polls > 3
    assert (await world.thread(ts)).state.failure.problem is Problem.OUT_OF_REACH
    told = [message for message in world.chat.messages if message.kind == "outage_started"]
    assert len(told) == 1
    assert [status.failing_seconds for status in statuses(world, "docs")] == [0, 0]
    world.job_api.faults_of.clear()
    await world.show("completed", wait=120)
    state = (await world.thread(ts)).state
    assert (state.failure.problem, state.job and state.job.status) == (None, "completed")
