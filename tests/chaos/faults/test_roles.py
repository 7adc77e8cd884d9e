"""The roles of the bot in separate processes, with Slack over Socket Mode."""

import json
import logging

import aiohttp
import pytest
from support.servers.free_ports import free_port
from support.servers.postgres import PostgresServer
from support.worlds.app_world import a_world

from bot.app.application import Role

pytestmark = pytest.mark.chaos


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
        await world.settled()
        await world.check()
