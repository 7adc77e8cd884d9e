"""`pagehand jobserver --check` with a real agent's program, as an operator runs it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.agents.packages import NotInstalled, package_of, program_folder
from support.agents.real_agents import EXAMPLE_AGENTS, KEY
from support.servers.free_ports import free_port
from support.servers.github_server import github_server
from support.servers.github_server_state import TOKEN
from support.servers.model_script import Refuse, Say
from support.servers.model_server import ModelServer
from support.worlds.jobserver_world import make_bare

from bot.jobserver.agents.named import CODEX
from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.settings import PREFIX
from bot.jobserver.settings.sandbox import SandboxSettings

GOOSE = EXAMPLE_AGENTS["goose"]
"""The one that starts fastest."""
ASKED = "Answer with the word: ready"
PATH = os.environ["PATH"]
SETUP = ("data", "port", "pages", "git", "repository", "push")


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer().running() as server:
        yield server


@pytest.fixture
async def sandbox(tmp_path: Path) -> str:
    try:
        await open_sandbox(SandboxSettings(allow_root=True), tmp_path / "data")
    except JobServerError:
        return "none"
    return "bubblewrap"


@pytest.fixture
def installed() -> str:
    """Returns a PATH with goose."""
    try:
        return f"{program_folder(package_of(GOOSE.agent))}:{PATH}"
    except NotInstalled as reason:
        pytest.skip(str(reason))


async def ran(path: str, tmp_path: Path, **settings: str) -> tuple[int | None, str]:
    given = {"API_KEY": "planted-key-of-the-job-server", "PORT": str(free_port())} | settings
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("pagehand"), "jobserver", "--check",
        env={"PATH": path} | {PREFIX + name: value for name, value in given.items()},
        cwd=tmp_path, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def check(path: str, tmp_path: Path, model: ModelServer, sandbox: str, **more: str) -> tuple[int | None, str]:
    settings = {
        "REPOSITORY": str(make_bare(tmp_path / "docs.git", {"a.md": "A.\n"})),
        "DATA_DIRECTORY": str(tmp_path / "data"),
        "SANDBOX": sandbox,
        "ALLOW_ROOT": "true",
        **{name.upper(): value for name, value in GOOSE.settings(model.url).items()},
    }
    return await ran(path, tmp_path, **(settings | more))


@pytest.mark.full
async def test_an_installed_agent_that_answers_passes(
    installed: str, tmp_path: Path, model: ModelServer, sandbox: str
) -> None:
    model.script.on(ASKED, Say("ready"))
    code, output = await check(installed, tmp_path, model, sandbox)
    assert code == 0, output
    found = [line.split()[:2] for line in output.splitlines()]
    assert [name for _, name in found] == [*SETUP, "installed", "model", "sandbox", "starts", "options", "answers"]
    assert [name for sign, name in found if sign != "ok"] == ["pages"], "nobody can log in there"
    assert "“ready”" in output


@pytest.mark.full
async def test_an_agent_with_a_rejected_key_fails(
    installed: str, tmp_path: Path, model: ModelServer, sandbox: str
) -> None:
    model.script.on(ASKED, Refuse(401, "this key is not known here"))
    code, output = await check(installed, tmp_path, model, sandbox)
    assert code == 1
    assert output.splitlines()[-1].startswith("FAIL answers")
    assert "this key is not known here" in output
    assert KEY not in output


@pytest.mark.full
async def test_an_agent_that_is_not_installed_fails(tmp_path: Path, model: ModelServer) -> None:
    code, output = await check("/usr/bin:/bin", tmp_path, model, "bubblewrap", AGENT="codex")
    assert code == 1
    assert output.splitlines()[len(SETUP)].startswith("FAIL installed")
    assert CODEX.install in output
    assert not model.requests


@pytest.mark.full
async def test_the_check_reports_a_github_tokens_permissions(tmp_path: Path) -> None:
    async with github_server(tmp_path / "github") as github:
        for token, code, words in (
            (TOKEN, 0, "the repository acme/docs can be read"),
            ("planted-old-token", 1, "does not accept the token"),
        ):
            found, output = await ran(PATH, tmp_path, REPOSITORY=github.repository_url, GITHUB_TOKEN=token)
            assert found == code, output
            assert words in output
            assert token not in output
