"""The operator's guide works: every block of its commands, and what the files of Docker Compose start."""

import json
import os
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.servers.fake_job_api import KEY, PROJECT
from support.servers.free_ports import free_port
from support.servers.postgres import PostgresServer
from support.worlds.documented_commands import LIMIT, ROOT, Shell, blocks, filled_in, serving
from support.worlds.new_user import SIGNING_SECRET, new_user

from bot.app.settings.config import Config

pytestmark = [pytest.mark.full, pytest.mark.postgres]
DEPLOY = ROOT / ".deploy"


async def test_every_command_of_the_guide_works(tmp_path: Path, postgres: PostgresServer) -> None:
    home, health_port = tmp_path / "home", free_port()
    home.mkdir()
    async with AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(postgres.empty_database())
        user = await stack.enter_async_context(new_user())
        credentials = user.workspace.credentials
        placeholders = {  # in this order: the database is in a directory of its own
            "/tmp/": f"{tmp_path}/",  # noqa: S108 - the page's own words
            "xoxb-…": credentials.bot_token,
            "xapp-…": credentials.app_token,
            "SLACK_SIGNING_SECRET=…": f"SLACK_SIGNING_SECRET={SIGNING_SECRET}",
            "https://jobs.example.org": user.job_api.url,
            "JOB_API_KEY=…": f"JOB_API_KEY={KEY}",
            "JOB_API_PROJECT=docs": f"JOB_API_PROJECT={PROJECT}",
            "postgresql://pagehand:…@127.0.0.1/pagehand": database_url,
            "HEALTH_PORT=8080": f"HEALTH_PORT={health_port}",
            "127.0.0.1:8080": f"127.0.0.1:{health_port}",
        }
        machine = {
            "PATH": f"{postgres.programs}:{os.environ['PATH']}",
            "PORT": str(free_port()),
            "SLACK_API_URL": user.workspace.api_url,
        }
        shell = Shell(home, machine, stack)
        for written in blocks("bot/OPERATING.md"):
            if "pagehand restored" in written:  # the page says that every instance is stopped by then
                await shell.stop_serving()
            await shell.follow(filled_in(written, placeholders))
            if serving(written) == "run":
                await user.gets_a_job_done("Fix the guide", LIMIT)


# what Docker Compose starts, as processes of this machine


def image() -> tuple[dict[str, str], str]:
    """The environment and the health check of the Dockerfile's default target, which is its last."""
    target = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").rpartition("\nFROM ")[2]
    (variables,) = re.findall(r"^ENV (.*)$", target, re.MULTILINE)
    (health_check,) = re.findall(r"^HEALTHCHECK .*\\\n *CMD (\[.*\])$", target, re.MULTILINE)
    _, _, program = json.loads(health_check)
    return dict(variable.split("=", 1) for variable in variables.split()), program


def services(*files: str) -> dict[str, Any]:
    """The services of the bot's image. No two of the files have the same one, so there is nothing to merge."""
    found = [yaml.safe_load((DEPLOY / file).read_text(encoding="utf-8"))["services"] for file in files]
    assert len({name for each in found for name in each}) == sum(map(len, found))
    return {name: service for each in found for name, service in each.items() if service["image"] == "pagehand"}


async def test_the_services_of_docker_compose_do_a_job_over_http(tmp_path: Path, postgres: PostgresServer) -> None:
    variables, health_check = image()
    bots = services("compose.yml", "compose.http.yml")
    assert set(bots) == {"migrate", "web", "worker"}
    assert bots["web"]["ports"] == [f"127.0.0.1:{Config.model_fields['port'].default}:3000"]
    assert all(bots[name]["depends_on"]["migrate"]["condition"].endswith("_successfully") for name in ("web", "worker"))
    port = free_port()
    async with AsyncExitStack() as stack:
        user = await stack.enter_async_context(new_user(f"http://127.0.0.1:{port}"))
        database_key = tmp_path / "database-url"
        database_key.write_text(await stack.enter_async_context(postgres.empty_database()))
        env_file = {
            "SLACK_BOT_TOKEN": user.workspace.credentials.bot_token,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SLACK_API_URL": user.workspace.api_url,
            "JOB_API_URL": user.job_api.url,
            "JOB_API_KEY": KEY,
            "JOB_API_PROJECT": PROJECT,
        }
        for name in ("migrate", "web", "worker"):
            health_port, container = str(free_port()), tmp_path / name
            container.mkdir()
            places = {"/keys/database-url": str(database_key), "8080": health_port}
            environment = {
                variable: filled_in(value, places)
                for variable, value in (variables | env_file | bots[name]["environment"] | {"PORT": str(port)}).items()
            }
            shell = Shell(container, environment, stack)
            await shell.follow(" ".join([".venv/bin/pagehand", *bots[name]["command"][1:]]))
            if name != "migrate":
                await shell.run(f'.venv/bin/python3 -c "{filled_in(health_check, places)}"')
        assert await user.workspace.signed_http.verify_request_url()
        await user.gets_a_job_done("Fix the guide", LIMIT)
