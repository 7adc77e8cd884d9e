"""A real agent's program behind the job API: from a prompt to a commit on the job's branch, and a follow-up."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.agents.packages import NotInstalled, package_of, program_folder
from support.agents.real_agents import EXAMPLE_AGENTS, MARK
from support.servers.model_script import Hang, Refuse, RunCommand, Say, WriteFile
from support.servers.model_server import ModelServer
from support.worlds.jobserver_world import JobServerWorld, make_bare, running

from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.bubblewrap import COPY
from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.settings.sandbox import SandboxSettings

GOOSE = EXAMPLE_AGENTS["goose"]
"""The one that starts fastest."""


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer().running() as server:
        yield server


@pytest.fixture
async def goose(tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Returns the settings of a server whose jobs it works on, in bubblewrap, with its model behind the relay."""
    try:
        monkeypatch.setenv("PATH", f"{program_folder(package_of(GOOSE.agent))}:{os.environ['PATH']}")
        await open_sandbox(SandboxSettings(egress=(), allow_root=True), tmp_path / "data")
    except (NotInstalled, JobServerError) as reason:
        pytest.skip(str(reason))
    monkeypatch.setenv(MARK, str(tmp_path))
    return {
        **GOOSE.settings(model.url),
        "sandbox": "bubblewrap",
        "egress": (),
        "pass_environment": (MARK,),
    }


@pytest.fixture
async def world(tmp_path: Path, goose: dict[str, Any]) -> AsyncIterator[JobServerWorld]:
    repository = make_bare(tmp_path / "r.git", {"colours.md": "A colour.\n"})
    async with running(repository, tmp_path / "data", **goose) as world:
        yield world


@pytest.mark.full
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
    assert model.requests[-1].holds("It is American now.")


@pytest.mark.full
async def test_a_job_over_budget_continues_after_a_reply(
    tmp_path: Path, goose: dict[str, Any], model: ModelServer
) -> None:
    """Each answer of the model uses two tokens, as counted by the relay; it would keep writing."""
    pages = [WriteFile(str(COPY / f"new{number}.md"), "New.\n") for number in range(10)]
    model.script.on("Make it American", *pages, Hang())
    model.script.on("Go on", Say("It is American now."))
    repository = make_bare(tmp_path / "r.git", {"colours.md": "A colour.\n"})
    async with running(repository, tmp_path / "data", **goose, budget="job=12") as world:
        job = await world.done("Make it American")
        assert (job["status"], job["details"]["reason"]) == ("failed", "the job's budget of 12 tokens is used up")
        assert "May it use" in job["details"]["question"]
        assert job["details"]["usage"]["tokensAnswered"] >= 6
        assert 1 <= job["details"]["partialWork"]["files"] < 10
        (await world.message(job["id"], "Go on")).raise_for_status()
        job = await world.ended(job["id"])
        assert (job["status"], job["details"]["summary"]) == ("completed", "It is American now.")
        assert world.show(f"pagehand/{job['id']}", "new0.md") == "New.\n"


@pytest.mark.full
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (402, "your credit balance is too low"),
        (529, "the model is overloaded"),
        (429, "too many requests"),  # it waits for seconds, and retries
    ],
)
async def test_work_is_resumed_after_the_model_refused_more(
    world: JobServerWorld, model: ModelServer, status: int, words: str
) -> None:
    """Two files were written, and the copy contains them."""
    pages = [str(COPY / name) for name in ("colours.md", "new.md")]
    written = [WriteFile(pages[0], "A color.\n"), WriteFile(pages[1], "New.\n")]
    model.script.on("Make it American", *written, Refuse(status, words))
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
