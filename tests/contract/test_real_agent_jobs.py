"""A real agent's program behind the job API: from a prompt to a commit on the job's branch, and on to the next."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.agents.packages import NotInstalled, package_of, program_folder
from support.agents.process_marks import MARK, marked_processes
from support.agents.real_agents import REAL_AGENTS
from support.servers.model_script import Hang, Refuse, RunCommand, Say, Speaker, WriteFile
from support.servers.model_server import ModelServer
from support.worlds.jobserver_world import JOB, JobServerWorld, make_bare, running

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
        await open_sandbox(SandboxSettings(egress=()), tmp_path / "data")
    except (NotInstalled, JobServerError) as reason:
        pytest.skip(str(reason))
    for name, value in {**GOOSE.variables(model.url), MARK: str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    repository = make_bare(tmp_path / "r.git", {"colours.md": "A colour.\n"})
    settings: dict[str, Any] = {
        "agent": ("goose",),
        "model": GOOSE.model,
        "sandbox": "bubblewrap",
        "egress": (),
        "pass_environment": (MARK,),
    }
    async with running(repository, tmp_path / "data", **settings) as world:
        yield world


async def test_a_job_and_its_follow_up(world: JobServerWorld, model: ModelServer) -> None:
    page = str(COPY / "colours.md")
    model.script.on("Make it American", WriteFile(page, "A color.\n"), Say("It is American now."))
    model.script.on("Make that shorter", RunCommand("rm colours.md"), WriteFile(page, "Color.\n"), Say("Shorter."))
    job = await world.done("Make it American")
    branch = f"pagehand/{job['id']}"
    assert (job["status"], world.show(branch, "colours.md")) == ("completed", "A color.\n")
    assert job["prLink"]
    assert job["details"]["summary"] == "It is American now."

    (await world.message(job["id"], "Make that shorter")).raise_for_status()
    job = await world.ended(job["id"])
    assert (job["status"], world.show(branch, "colours.md")) == ("completed", "Color.\n")
    told = [part.text for part in model.requests[-1].parts if part.speaker is Speaker.MODEL]
    assert "It is American now." in "".join(told)


async def test_a_job_that_is_cancelled_while_its_model_is_silent(
    world: JobServerWorld, model: ModelServer, tmp_path: Path
) -> None:
    model.script.on("Think about it", Hang())
    job = (await world.create("Think about it")).raise_for_status().json()
    await model.until_hanging()
    assert marked_processes(str(tmp_path))
    (await world.client.post(f"{JOB}/{job['id']}/cancel")).raise_for_status()
    job = await world.ended(job["id"])
    assert (job["status"], job["prLink"]) == ("completed", None)
    assert "stopped" in job["details"]["reason"]
    assert not marked_processes(str(tmp_path))


async def test_what_was_done_when_the_credit_ran_out_is_gone_on_with(world: JobServerWorld, model: ModelServer) -> None:
    """Two files were written; the agent's session knows of them, and so does the copy."""
    pages = [str(COPY / name) for name in ("colours.md", "new.md")]
    written = [WriteFile(pages[0], "A color.\n"), WriteFile(pages[1], "New.\n")]
    model.script.on("Make it American", *written, Refuse(402, "your credit balance is too low"))
    model.script.on("Go on", Say("It is American now."))
    job = await world.done("Make it American")
    assert (job["status"], job["prLink"]) == ("failed", None)
    assert job["details"]["partialWork"] == {"files": 2}
    assert world.branches() == {"main"}, "it is not proposed by itself"

    (await world.message(job["id"], "Go on")).raise_for_status()
    job = await world.ended(job["id"])
    branch = f"pagehand/{job['id']}"
    assert (job["status"], world.show(branch, "colours.md"), world.show(branch, "new.md")) == (
        "completed", "A color.\n", "New.\n"
    )  # fmt: skip
    assert job["prLink"]
    assert job["details"]["partialWork"] is None
