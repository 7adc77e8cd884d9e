"""Compares the job server's README with what each agent's program says about itself."""

import os
import re
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.agents.abilities import QUESTIONS, abilities_of
from support.agents.packages import NotInstalled, package_of, program_folder
from support.agents.real_agents import KEY, REAL_AGENTS, tried

from bot.jobserver.agents.choice import agent_editor
from bot.jobserver.agents.connection import Started
from bot.jobserver.editors.interface import EditTask
from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.sandbox.interface import Sandbox, Workspace
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import SandboxSettings

README = Path(__file__).parents[3] / "bot" / "jobserver" / "README.md"
_TABLE = re.compile(r"<!-- made by tests/jobserver/contract/test_agent_abilities\.py -->\n(.+?)\n\n", re.DOTALL)


def rows() -> dict[str, str]:
    """The lines of the table by their agents."""
    table = _TABLE.search(README.read_text(encoding="utf-8"))
    assert table is not None
    return {line.split("`")[1]: line for line in table[1].splitlines()[2:]}


def test_each_agent_has_a_row_in_the_table() -> None:
    assert sorted(rows()) == sorted(REAL_AGENTS)


@tried()
async def test_each_row_matches_its_program(name: str, tmp_path: Path) -> None:
    """If it differs, the row made here belongs into the README."""
    real = REAL_AGENTS[name]
    try:
        abilities = await abilities_of(real, tmp_path)
    except NotInstalled as reason:
        pytest.skip(str(reason))
    info = abilities.said.agent_info
    assert info is None or info.version == package_of(real.agent).version
    assert abilities.row() == rows()[name]
    assert abilities.heard.is_asked == (name in QUESTIONS)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "model", "wrong"),
    [("claude", "haiku", "haikku"), ("codex", "gpt-5.5", "gpt-5,5")],
)
async def test_a_model_comes_from_the_programs_list_and_a_wrong_one_shows_it(
    name: str, model: str, wrong: str, tmp_path: Path
) -> None:
    """At its maker's own address, which is not called before a turn."""
    key = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY"}[name]
    try:
        programs = program_folder(package_of(REAL_AGENTS[name].agent))
        sandbox = await open_sandbox(SandboxSettings(egress=(), allow_root=True), tmp_path / "data")
    except (NotInstalled, JobServerError) as reason:
        pytest.skip(str(reason))
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", key: KEY}
    told = [await started(sandbox, environment, tmp_path / asked, name, asked) for asked in (model, wrong)]
    assert f"model {model} (of " in told[0].options
    assert told[0].refusal == told[1].options == ""
    assert told[1].refusal.startswith(f"{name} has no model “{wrong}”: set PAGEHAND_JOBSERVER_MODEL to one of ")
    assert model in told[1].refusal


async def started(sandbox: Sandbox, environment: dict[str, str], folder: Path, agent: str, model: str) -> Started:
    workspace = Workspace(folder / "copy", folder / "home")
    for directory in (workspace.copy, workspace.home):
        directory.mkdir(parents=True)
    settings = JobServerSettings(
        repository=str(folder), api_key=SecretStr("planted-key-of-the-job-server"), agent=(agent,), model=model,
        pass_environment=("PATH",), egress=(),
    )  # fmt: skip
    log = folder / "log"
    return await agent_editor(settings, sandbox, environment).started(EditTask("", workspace, log))
