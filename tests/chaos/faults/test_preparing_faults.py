"""Faults while a request is prepared, and while a job is stopped: each is done later, once."""

import pytest
from support.fakes.slack_limits import ANY_NUMBER
from support.servers.fake_job_api import Operation, cut, refusing
from support.servers.slack_faults import CallFault
from support.worlds.app_world import AppWorld, until

from bot.app.edges import EdgeTimings
from bot.notices.said import ButtonId
from bot.workspace.model.entities import Upload

pytestmark = [pytest.mark.chaos, pytest.mark.either_database]
READ = ("users.info", "conversations.info", "conversations.replies")
"""The Slack look-ups for a job in an existing thread."""


@pytest.mark.full
async def test_slack_fails_in_every_way_while_a_threads_job_is_prepared(world: AppWorld) -> None:
    """Nothing is sent before each look-up has succeeded, then once, with the whole context."""
    await world.start()
    faults = [fault for method in READ for fault in _every_way(world, method)]
    began = await world.workspace.people["ben"].say("docs", "The port is wrong in the quick start")
    await world.workspace.people["ana"].say("docs", "@pagehand Fix that", thread_ts=began.ts)
    await _until_prepared(world)
    await world.fake_job_api.until(lambda: world.fake_job_api.created)
    assert [fault.hits for fault in faults] == [1] * len(faults)
    (created,) = world.fake_job_api.created
    assert created.prompt.startswith("Fix that\n")
    assert "The port is wrong in the quick start" in created.prompt
    await world.settled()
    assert (await world.sql("SELECT count(*) FROM audit WHERE action = 'asked'"))[0][0] == 1


@pytest.mark.full
async def test_the_job_api_is_away_while_a_file_is_uploaded(world: AppWorld) -> None:
    """Refused, without an answer, and with a lost answer: the job starts once, with its file."""
    world.edge_timings = EdgeTimings(job_api_pause=1.0, slack_limits=ANY_NUMBER, hold_back=0.0)
    await world.start(JOB_API_FILES="true")
    for fault in (refusing(503), cut(applied=False), cut(applied=True)):
        world.fake_job_api.fail(fault, Operation.UPLOAD)
    await world.workspace.people["ana"].say("docs", "@pagehand Use this", files=[Upload("look.png", b"\x89PNG")])
    await _until_prepared(world)
    await world.fake_job_api.until(lambda: world.fake_job_api.created)
    (created,) = world.fake_job_api.created
    assert [world.fake_job_api.files[file_id] for file_id in created.files] == [b"\x89PNG"]
    assert world.fake_job_api.tried(Operation.UPLOAD) == 4
    await world.settled()


@pytest.mark.full
async def test_the_job_api_is_away_while_a_job_is_stopped(world: AppWorld) -> None:
    """Refused, without an answer, and with a lost answer: the job is stopped, and that is posted once."""
    await world.start(JOB_API_CANCEL="true")
    (job,) = await world.begin("Fix the guides")
    for fault in (refusing(503), cut(applied=False), cut(applied=True)):
        world.fake_job_api.fail(fault, Operation.CANCEL)
    await world.workspace.people["ana"].press("docs", await world.card("Fix the guides"), ButtonId.STOP_JOB)

    async def stopped() -> bool:
        await world.hurry()
        return bool(world.fake_job_api.cancelled)

    await until(stopped)
    await world.until_said("Fix the guides", "started", "stopped")
    assert world.fake_job_api.jobs[job]["status"] == "completed"
    assert (await world.sql("SELECT count(*) FROM audit WHERE action = 'stopped'"))[0][0] == 1
    await world.check()


def _every_way(world: AppWorld, method: str) -> list[CallFault]:
    """Slack limits the rate for a second, fails, and does not answer: one after the other."""
    faults = world.workspace.faults
    return [faults.rate_limit(1, method=method), faults.server_error(method=method), faults.drop(method=method)]


async def _until_prepared(world: AppWorld) -> None:
    """Makes everything due at once, after checking that nothing waits for long."""

    async def prepared() -> bool:
        await world.hurry()
        open_ones = "SELECT count(*) FROM requests WHERE state IN ('received', 'preparing')"
        recorded = (await world.sql("SELECT count(*) FROM requests"))[0][0]
        return bool(recorded) and not (await world.sql(open_ones))[0][0]

    await until(prepared)
