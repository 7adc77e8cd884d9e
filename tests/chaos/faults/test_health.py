"""What monitoring sees of an outage: the health over HTTP, by every role, and the log."""

import json
import logging
from typing import Any

import aiohttp
import pytest
from support.servers.fake_job_api import refusing
from support.servers.free_ports import free_port
from support.servers.postgres import PostgresServer
from support.worlds.app_world import AppWorld, a_world, until

from bot.app.application import HealthTimings, Role
from bot.app.checks.watch import WatchTimings
from bot.domain.findings import LastTime
from bot.runtime import health
from bot.store.condition import database_condition

pytestmark = pytest.mark.chaos


@pytest.mark.full
async def test_an_outage_shows_in_health_and_log_from_first_failure_to_recovery(
    world: AppWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    port = free_port()
    timings = HealthTimings(grace=0.5, log_every=0.05, recovery=600.0)
    await world.start(timings=timings, PAGEHAND_HEALTH_PORT=str(port))
    (job,) = await world.begin("Running")
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        assert await _ask(session) == (200, True, _all_well())

        world.fake_job_api.fail(refusing(503), times=None)
        await until(lambda: _is(session, 503))
        status, ok, parts = await _ask(session)
        assert (status, ok) == (503, False)
        assert parts["job API of docs"].startswith("has not worked for ")
        assert parts["job API of docs"].endswith(" s: The job API failed (503).")
        assert {**parts, "job API of docs": "works"} == _all_well()
        await until(lambda: _logged(caplog, "ERROR", "job API of docs has not worked for"))

        world.fake_job_api.heal()
        await world.hurry()
        await until(lambda: _is(session, 200))
        assert await _ask(session) == (200, True, _all_well())
    world.complete(job)
    await world.hurry()
    await world.until_said("Running", "started", "completed")
    assert [record.levelname for record in _of_health(caplog)] == ["ERROR"]
    began = "job API of docs: not working, will keep trying: The job API failed (503)."
    assert [record.getMessage() for record in caplog.records if "will keep trying" in record.getMessage()] == [began]
    await world.check()


def _all_well() -> dict[str, str]:
    workers = ("request preparer", "file uploader", "request sender", "job poller", "pull request poller", "outbox")
    return dict.fromkeys(
        (*workers, "home publisher", "history reader", "job API of docs", "slack connection", "recording", "set-up"),
        "works",
    )


async def _ask(session: aiohttp.ClientSession) -> tuple[int, bool, dict[str, Any]]:
    async with session.get("/health") as answer:
        told = json.loads(await answer.text())
        return answer.status, told["ok"], told["parts"]


async def _is(session: aiohttp.ClientSession, status: int) -> bool:
    return (await _ask(session))[0] == status


async def _logged(caplog: pytest.LogCaptureFixture, level: str, words: str) -> bool:
    return any(record.levelname == level and words in record.getMessage() for record in _of_health(caplog))


def _of_health(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Returns what the health has logged about failures, apart from the beginnings of outages."""
    of_health = [record for record in caplog.records if record.name == health.__name__]
    return [each for each in of_health if each.levelno > logging.INFO and "will keep trying" not in each.getMessage()]


async def test_a_scope_that_is_missing_from_the_start_shows_as_a_warning(world: AppWorld) -> None:
    port = free_port()
    world.workspace.credentials.remove_scopes("files:read")
    await world.start(timings=HealthTimings(watch=WatchTimings(first=0.0)), PAGEHAND_HEALTH_PORT=str(port))
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def warns() -> bool:
            async with session.get("/health") as answer:
                return "files:read" in str(json.loads(await answer.text())["warnings"])

        await until(warns)
    await world.check()


async def test_the_time_of_the_last_slack_event_is_saved_with_the_next_write(world: AppWorld) -> None:
    await world.start(timings=HealthTimings(probe_every=0.05, watch=WatchTimings(first=3_600.0)))
    assert (await database_condition(world.database_url)).last == {}
    await world.begin("Noted")
    await world.workspace.people["ana"].say("docs", "Good morning")

    async def noted() -> bool:
        last = (await database_condition(world.database_url)).last
        return {LastTime.COMMAND, LastTime.EVENT} <= set(last)

    await until(noted)
    await world.check()


@pytest.mark.full
@pytest.mark.postgres
async def test_over_socket_mode_workers_receive_and_web_serves_the_health(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    port = free_port()
    async with postgres.database() as url, a_world(url) as world:
        web = await world.start(Role.WEB, PORT=str(port))
        assert web.app.receiver is None
        assert "workers receive from Slack, this process only serves health checks" in caplog.text
        assert len(world.workspace.socket_mode.connections) == 0
        for _ in range(2):
            await world.start(Role.WORKER)
        await world.workspace.changes.wait_for(lambda: len(world.workspace.socket_mode.connections) == 4)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            for page in ("/health", "/health/live", "/health/ready"):
                async with session.get(page) as answer:
                    assert (answer.status, json.loads(await answer.text())["ok"]) == (200, True)
        (job,) = await world.begin("Do it")
        await world.reply("Do it", "And this")
        await world.until_steered(job, "And this")
        world.complete(job)
        await world.check()
