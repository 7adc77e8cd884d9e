"""`pagehand jobserver --check` with a real agent's program, as an operator runs it."""

import asyncio
import sys
from pathlib import Path

import pytest
from support.agents.real_agents import EXAMPLE_AGENTS, KEY
from support.servers.free_ports import free_port
from support.servers.model_script import Refuse, Say, Step
from support.servers.model_server import ModelServer
from support.worlds.hostile_world import needs_bubblewrap
from support.worlds.jobserver_world import make_bare
from support.worlds.real_agent_world import path_with

from bot.jobserver.settings import PREFIX

GOOSE = EXAMPLE_AGENTS["goose"]
"""The one that starts fastest."""
ASKED = "Answer with the word: ready"
SETUP = ("data", "port", "pages", "git", "repository", "push")


@pytest.mark.full
@pytest.mark.parametrize(
    ("answer", "last", "word"),
    [
        (Say("ready"), "ok   answers", "“ready”"),
        (Refuse(401, "this key is not known here"), "FAIL answers", "this key is not known here"),
    ],
    ids=["answers", "rejected key"],
)
async def test_an_installed_agent_is_asked_for_a_word(tmp_path: Path, answer: Step, last: str, word: str) -> None:
    await asyncio.to_thread(needs_bubblewrap)
    async with ModelServer().running() as model:
        model.script.on(ASKED, answer)
        settings = {
            "API_KEY": "planted-key-of-the-job-server",
            "PORT": str(free_port()),
            "REPOSITORY": str(make_bare(tmp_path / "docs.git", {"a.md": "A.\n"})),
            "DATA_DIRECTORY": str(tmp_path / "data"),
            "ALLOW_ROOT": "true",
            **{name.upper(): value for name, value in GOOSE.settings(model.url).items()},
        }
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("pagehand"), "jobserver", "--check",
            env={"PATH": path_with(GOOSE.agent)} | {PREFIX + name: value for name, value in settings.items()},
            cwd=tmp_path, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output = (await process.communicate())[0].decode()
    assert process.returncode == last.startswith("FAIL"), output
    lines = output.splitlines()
    assert lines[-1].startswith(last)
    assert word in output
    assert KEY not in output
    found = [line.split()[:2] for line in lines]
    assert [name for _, name in found] == [*SETUP, "installed", "model", "sandbox", "starts", "options", "answers"]
    assert [name for sign, name in found[:-1] if sign != "ok"] == ["pages"], "nobody can log in there"
