"""A real agent's program behind the job API: from a prompt to a commit on the job's branch, and on to the next."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.agents.packages import NotInstalled, package_of, program_folder
from support.agents.real_agents import REAL_AGENTS
from support.servers.model_script import RunCommand, Say, Speaker, WriteFile
from support.servers.model_server import ModelServer
from support.worlds.jobserver_world import JobServerWorld, make_bare, running

from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.bubblewrap import COPY
from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.settings.sandbox import SandboxSettings

GOOSE = REAL_AGENTS["goose"]
"""The quickest to start."""


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer().running() as server:
        yield server


@pytest.fixture
async def world(tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[JobServerWorld]:
    try:
        monkeypatch.setenv("PATH", f"{program_folder(package_of(GOOSE.agent))}:{os.environ['PATH']}")
        await open_sandbox(SandboxSettings(sandbox="bubblewrap"), tmp_path / "data")
    except (NotInstalled, JobServerError) as reason:
        pytest.skip(str(reason))
    for name, value in GOOSE.variables(model.url).items():
        monkeypatch.setenv(name, value)
    repository = make_bare(tmp_path / "r.git", {"colours.md": "A colour.\n"})
    async with running(
        repository, tmp_path / "data", agent=("goose",), model=GOOSE.model, sandbox="bubblewrap"
    ) as world:
        yield world


async def test_a_job_and_its_follow_up(world: JobServerWorld, model: ModelServer) -> None:
    page = str(COPY / "colours.md")
    model.script.on("Make it American", WriteFile(page, "A color.\n"), Say("It is American now."))
    model.script.on("Make that shorter", RunCommand("rm colours.md"), WriteFile(page, "Color.\n"), Say("Shorter."))
    job = await world.done("Make it American")
    branch = f"pagehand/{job['id']}"
    assert (job["status"], world.show(branch, "colours.md")) == ("completed", "A color.\n")
    assert job["prLink"]

    (await world.message(job["id"], "Make that shorter")).raise_for_status()
    job = await world.ended(job["id"])
    assert (job["status"], world.show(branch, "colours.md")) == ("completed", "Color.\n")
    told = [part.text for part in model.requests[-1].parts if part.speaker is Speaker.MODEL]
    assert "It is American now." in "".join(told)
