"""The guide works, after the page to start with: every block of commands, in order, until a job is done."""

import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support.servers.fake_job_api import KEY, PROJECT
from support.servers.free_ports import free_port
from support.servers.postgres import PostgresServer
from support.worlds.documented_commands import LIMIT, Shell, blocks, filled_in, serving
from support.worlds.new_user import SIGNING_SECRET, new_user

pytestmark = pytest.mark.promise("documentation")


@pytest.mark.full
@pytest.mark.postgres
async def test_every_command_of_the_guide_works(tmp_path: Path, postgres: PostgresServer) -> None:
    home, health_port = tmp_path / "home", free_port()
    home.mkdir()
    async with AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(postgres.empty_database())
        user = await stack.enter_async_context(new_user())
        credentials = user.workspace.credentials
        placeholders = {  # in this order: the database is in its own directory
            "jobserver.env": "later.env",  # otherwise `doctor` would look for GitHub and an agent
            "openssl rand -hex 24": f"echo {KEY}",
            "http://127.0.0.1:8765": user.job_api.url,
            "xoxb-…": credentials.bot_token,
            "xapp-…": credentials.app_token,
            "SLACK_SIGNING_SECRET=…": f"SLACK_SIGNING_SECRET={SIGNING_SECRET}",
            "https://jobs.example.org": user.job_api.url,
            "JOB_API_KEY=…": f"JOB_API_KEY={KEY}",
            "JOB_API_PROJECT=docs": f"JOB_API_PROJECT={PROJECT}",
            "postgresql://pagehand:…@127.0.0.1/pagehand": database_url,
            "C0123ABCD": user.workspace.channels["docs"].id,
            "HEALTH_PORT=8080": f"HEALTH_PORT={health_port}",
            "127.0.0.1:8080": f"127.0.0.1:{health_port}",
        }
        machine = {
            "PATH": f"{postgres.programs}:{os.environ['PATH']}",
            "PORT": str(free_port()),
            "SLACK_API_URL": user.workspace.api_url,
        }
        shell = Shell(home, machine, stack)
        for written in (*blocks("bot/docs/start.md"), *blocks("bot/docs/operate.md")):
            if "pagehand restored" in written:  # the page says that every instance is stopped by then
                await shell.stop_serving()
            await shell.follow(filled_in(written, placeholders))
            if serving(written) == "run":
                await user.gets_a_job_done("Fix the guide", LIMIT)
