"""Runs every block of commands in the documentation as it is written, page by page, in a directory of its own.

Blocks that CI runs itself (installing, the tests, the checks) are looked up in `.ci`. Long ones get less work."""

import os
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from support.servers.fake_job_api import KEY, PROJECT
from support.servers.free_ports import free_port
from support.servers.postgres import PostgresServer
from support.worlds.documented_commands import DOCUMENTS, LIMIT, ROOT, Shell, blocks, filled_in, serving
from support.worlds.new_user import SIGNING_SECRET, new_user

from bot.workspace import WorkspaceServer

pytestmark = pytest.mark.promise("documentation")

PAGES = (
    "README.md",
    ".github/CONTRIBUTING.md",
    "bot/docs/agents.md",
    "bot/docs/jobserver.md",
    "bot/docs/slack.md",
)
IN_FULL = ("tests/README.md",)
"""Commands, each of which imports most of the tests."""
IN_THE_GUIDE = ("bot/docs/start.md", "bot/docs/operate.md")
CI = "".join((ROOT / ".ci" / script).read_text(encoding="utf-8") for script in ("run", "pythons"))
SHORTER = (
    # Commands that name no tests collect a few: collecting all takes ten seconds each.
    (r"(\.venv/bin/pytest[^&\n]* -m full)", r"\1 tests/jobserver/contract/test_real_agents.py"),
    (r'(?m)(\.venv/bin/pytest(?: -n \d+)?(?: -m "[^"\n]*")?)$', r"\1 tests/tutorial"),
    (r"(?m)^(\.ci/full)$", r"bash -n \1"),
    (r"(\.venv/bin/pytest\b[^&\n]*)", r"\1 --collect-only -q"),
    (r"-n \d+", "-n 0"),
    (r"--minutes \d+", "--help"),
    (r"--seconds \d+", "--seconds 1"),
    (r"(bench_\w+\.py)", r"\1 --help"),
)


def run_by_ci(page: str, number: int, block: str) -> bool:
    """CI follows the README's blocks, and runs each check of the page for contributors."""
    if page == "README.md":
        return f".ci/readme {number})" in CI
    checks = re.findall(r"^\.venv/bin/(.+?)(?: && |$)", block, re.MULTILINE)
    return page.endswith("CONTRIBUTING.md") and bool(checks) and all(check in CI for check in checks)


def shortened(block: str) -> str:
    for pattern, replacement in SHORTER:
        block = re.sub(pattern, replacement, block)
    return block


@asynccontextmanager
async def running_workspace() -> AsyncIterator[WorkspaceServer]:
    workspace = WorkspaceServer()
    await workspace.start()
    try:
        yield workspace
    finally:
        await workspace.stop()


@pytest.mark.parametrize("page", [*PAGES, *(pytest.param(page, marks=pytest.mark.full) for page in IN_FULL)])
async def test_documented_commands_work(page: str, tmp_path: Path) -> None:
    port, home = free_port(), tmp_path / "home"
    home.mkdir()
    async with AsyncExitStack() as stack:
        workspace = await stack.enter_async_context(running_workspace())
        placed = {
            "xoxb-…": workspace.credentials.bot_token,
            "xapp-…": workspace.credentials.app_token,
            "JOB_API_KEY=…": "JOB_API_KEY=a-key-of-the-job-api",
            ":8765": f":{port}",
        }
        slack = {"SLACK_API_URL": workspace.api_url.rstrip("/"), "PAGEHAND_JOBSERVER_PORT": str(port)}
        shell = Shell(home, slack, stack)
        for number, written in enumerate(blocks(page), start=1):
            block = filled_in(written, placed)
            if not run_by_ci(page, number, block):
                await shell.follow(block if serving(block) else shortened(block))


def test_every_page_with_commands_is_tested() -> None:
    assert {page for page in DOCUMENTS if blocks(page)} == {*PAGES, *IN_FULL, *IN_THE_GUIDE}


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
