"""Job API faults: outcomes that stay unknown, and an outage."""

from collections.abc import AsyncIterator

import pytest
from support.fakes.slack_limits import ANY_NUMBER
from support.servers.fake_job_api import GARBAGE, TRUNCATED, WEB_PAGE, Fault, Operation, cut, refusing, slow
from support.worlds.app_world import AppWorld, a_world, until

from bot.app.edges import EdgeTimings
from bot.notices.said import ButtonId

pytestmark = [pytest.mark.promise("sent once"), pytest.mark.chaos, pytest.mark.either_database]
FINISHED = ("started", "completed")

UNKNOWN = {
    "500": refusing(500, "oops"),
    "500 after": refusing(500, "oops", applied=True),
    "503": refusing(503),
    "time-out": slow(15.0),
    "cut before": cut(applied=False),
    "cut after": cut(applied=True),
    "truncated": TRUNCATED,
    "page": WEB_PAGE,
    "garbage": GARBAGE,
    "empty": Fault(applied=True, body=b""),
}


SHORT_PAUSES = EdgeTimings(job_api_pause=1.0, slack_limits=ANY_NUMBER, hold_back=0.0)
"""If the job API names no time, a project is left alone for a second only."""


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[AppWorld]:
    async with a_world(database_url, edge_timings=SHORT_PAUSES) as made:
        yield made


@pytest.mark.full
async def test_requests_in_doubt_are_asked_about(world: AppWorld) -> None:
    """They are neither repeated nor forgotten: the thread has a button that sends the request once more."""
    await world.start()
    for name, fault in UNKNOWN.items():
        world.fake_job_api.fail(fault, Operation.CREATE, prompt=name)
        world.fake_job_api.fail(fault, Operation.MESSAGE, prompt=f"More: {name}")
    (spared,) = await world.begin("Spared")
    for name in UNKNOWN:
        await world.ask(name)
        await world.reply("Spared", f"More: {name}")
    for name in UNKNOWN:
        await world.until_said(name, "unsure/1")
        assert world.fake_job_api.tried(Operation.CREATE, name) == 1
    await world.settled()
    assert world.said("Spared")[1:] == ["unsure/1"] * len(UNKNOWN)
    assert {world.fake_job_api.tried(Operation.MESSAGE, f"More: {name}") for name in UNKNOWN} == {1}
    await world.press("500", ButtonId.SEND_AGAIN, key="/unsure/")
    await world.until_said("500", "unsure/1", "started")
    world.complete(spared, world.fake_job_api.job_of("500"))
    await world.until_said("500", "unsure/1", *FINISHED)
    await world.workspace.changes.wait_for(lambda: "completed" in world.said("Spared"))
    await world.check()


@pytest.mark.full
async def test_with_idempotency_keys_everything_is_retried_and_done_once(world: AppWorld) -> None:
    world.fake_job_api.honours_keys = True
    await world.start(JOB_API_IDEMPOTENT="true")
    names = list(UNKNOWN)
    # No thread meets the same fault twice, so that both time-outs pass at the same time.
    after = dict(zip(names, [*names[1:], names[0]], strict=True))
    for name, fault in UNKNOWN.items():
        world.fake_job_api.fail(fault, Operation.CREATE, prompt=name)
        world.fake_job_api.fail(UNKNOWN[after[name]], Operation.MESSAGE, prompt=f"More: {name}")
    for name in UNKNOWN:
        await world.ask(name)
    for name in UNKNOWN:
        await world.reply(name, f"More: {name}")
    async with world.hurrying():
        for name in UNKNOWN:
            await world.until_said(name, "started")
        jobs = [world.fake_job_api.job_of(name) for name in UNKNOWN]
        for job, name in zip(jobs, UNKNOWN, strict=True):
            await world.until_steered(job, f"More: {name}")
        # The job API has them all; Pagehand knows them only after each was sent once more.
        await world.settled()
    world.complete(*jobs)
    for name in UNKNOWN:
        await world.until_said(name, "started", "completed")
    await world.check()


async def test_the_job_api_is_away_and_comes_back(world: AppWorld) -> None:
    await world.start()
    (job,) = await world.begin("Running")
    await world.fake_job_api.stop()
    await world.reply("Running", "Meanwhile")
    await world.ask("Asked meanwhile")
    await world.card("Asked meanwhile")

    async def both_tried() -> bool:
        rows = await world.sql("SELECT count(*) FROM requests WHERE state = 'waiting' AND attempts > 0")
        return bool(rows[0][0] == 2)

    await until(both_tried)
    await world.fake_job_api.start()
    await world.hurry()
    await world.fake_job_api.until(lambda: world.fake_job_api.follow_ups(job) == ["Meanwhile"])
    await world.until_said("Asked meanwhile", "started")
    world.complete(job)
    await world.until_said("Running", "started", "completed")
    await world.check()
