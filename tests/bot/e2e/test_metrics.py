"""The metrics of a running bot: what they count, who may read them, and that Prometheus can."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from support.oracles.promtool import faults_of
from support.servers.fake_job_api import Operation, refusing
from support.servers.free_ports import free_port
from support.worlds.app_world import AppWorld, a_world, until

from bot.app.application import Role

pytestmark = pytest.mark.promise("metrics")

TOKEN = "planted-secret-metrics-token"
PROMPT = "Tell nobody of planted words"


@pytest.fixture
async def world(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[AppWorld]:
    async with a_world(f"sqlite:///{shutil.copy(sqlite_template, tmp_path)}") as world:
        yield world


async def answer(port: int, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics", headers=headers) as got,
    ):
        return got.status, await got.text()


def values(page: str) -> dict[str, float]:
    """Returns each sample by name and labels."""
    lines = (line.rpartition(" ") for line in page.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


@pytest.mark.full
async def test_events_are_counted_and_queues_are_measured(world: AppWorld) -> None:
    port = free_port()
    await world.start(PAGEHAND_HEALTH_PORT=str(port))
    world.fake_job_api.fail(refusing(429, Retry_After="1"), Operation.CREATE)
    async with world.hurrying():
        (job,) = await world.begin(PROMPT)
        await world.reply(PROMPT, "And more planted words")
        await world.fake_job_api.until(lambda: world.fake_job_api.tried(Operation.MESSAGE))
        world.complete(job)
        await world.until_said(PROMPT, "started", "completed")
    status, page = await answer(port)
    assert status == 200
    seen = values(page)
    for sample in (
        'pagehand_requests_total{outcome="asked",way_in="command"}',
        'pagehand_requests_total{outcome="steered",way_in="reply"}',
        'pagehand_acknowledgement_seconds_count{status="200"}',
        'pagehand_job_api_call_seconds_count{operation="create",outcome="busy"}',
        'pagehand_job_api_call_seconds_count{operation="create",outcome="ok"}',
        'pagehand_job_api_call_seconds_count{operation="get",outcome="ok"}',
        'pagehand_polls_total{outcome="changed"}',
        'pagehand_slack_call_seconds_count{method="chat.postMessage",outcome="ok"}',
        'pagehand_notices_total{kind="job_finished",outcome="ok"}',
        'pagehand_slack_budget_calls{method="chat.postMessage"}',
        "pagehand_socket_connections",
        "pagehand_database_free_bytes",
        "pagehand_database_readable",
        "pagehand_ready",
    ):
        assert seen[sample] >= 1, sample
    assert seen['pagehand_part_failing_seconds{part="outbox"}'] == 0
    assert {'pagehand_queue_rows{queue="send"}', 'pagehand_queue_overdue_seconds{queue="poll"}'} <= seen.keys()
    assert sum(value for name, value in seen.items() if name.startswith("pagehand_jobs{")) == 1
    assert seen["pagehand_socket_reconnects_total"] == 0
    assert "planted" not in page
    assert job not in page
    assert faults_of(page) == ""


async def test_metrics_on_the_public_port_require_their_token(world: AppWorld) -> None:
    port, closed = free_port(), free_port()
    await world.start(Role.WEB, PORT=str(closed))
    assert (await answer(closed))[0] == 404
    await world.start(Role.WEB, PORT=str(port), PAGEHAND_METRICS_TOKEN=TOKEN)
    assert (await answer(port))[0] == 401
    assert (await answer(port, f"{TOKEN}x"))[0] == 401
    status, page = await answer(port, TOKEN)
    assert status == 200
    assert "pagehand_ready 1.0" in page
    assert TOKEN not in page


async def test_a_replaced_connection_is_counted(world: AppWorld) -> None:
    port = free_port()
    await world.start(PAGEHAND_HEALTH_PORT=str(port))
    await world.workspace.disconnect()

    async def reconnected() -> bool:
        return values((await answer(port))[1])["pagehand_socket_reconnects_total"] > 0

    await until(reconnected)
