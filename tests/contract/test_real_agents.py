"""Coding agents as they come from their registry, driven by the agent editor; only their model is the tests' own.

Left out, saying so, where a program cannot be installed.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.agents.packages import NotInstalled
from support.agents.real_agents import KEY, REAL_AGENTS
from support.fakes.direct_sandbox import DirectSandbox
from support.servers.model_script import Hang, Refuse, RunCommand, Say, Speaker, WriteFile
from support.worlds.real_agent_world import PAGE, RealAgentWorld, real_agent_world

from bot.jobserver.errors import EditError

AMERICAN = "# Colors\n\nA color.\n"
SHORTER = "# Colors\n"
STOPS_WITHIN_S = 5.0


HEAVY = {"opencode"}
"""Seven seconds of a core for each start."""


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.heavy] * (name in HEAVY)) for name in sorted(REAL_AGENTS)]
)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def world(name: str, tmp_path: Path) -> AsyncIterator[RealAgentWorld]:
    try:
        async with real_agent_world(REAL_AGENTS[name], DirectSandbox(), tmp_path) as world:
            yield world
            await nothing_runs(world)
    except NotInstalled as reason:
        pytest.skip(str(reason))


async def nothing_runs(world: RealAgentWorld) -> None:
    """What was killed with its group may be seen for a moment more."""
    async with asyncio.timeout(STOPS_WITHIN_S):
        while world.running():  # noqa: ASYNC110 (other processes tell nobody that they ended)
            await asyncio.sleep(0.01)


async def test_an_edit_and_a_follow_up_that_remembers_it(name: str, world: RealAgentWorld) -> None:
    world.model.script.on("Make it American", WriteFile(world.path(PAGE), AMERICAN), Say("I made **it** American."))
    world.model.script.on("Make that shorter", WriteFile(world.path(PAGE), SHORTER), Say("Only the title is left."))

    first = await world.edit("Make it American")
    assert world.page.read_text(encoding="utf-8") == AMERICAN
    assert first.summary == "I made **it** American."
    assert first.question == first.reason == ""
    assert world.progress.activities
    assert {request.key for request in world.model.requests} == {KEY}

    before = len(world.model.requests)
    second = await world.edit("Make that shorter")
    assert world.page.read_text(encoding="utf-8") == SHORTER
    assert second.summary == "Only the title is left."
    asked = world.model.requests[before]
    assert asked.holds("Make it American")
    assert asked.holds(first.summary)
    # Told by the agent from its own session as what the model said, not quoted again by the editor.
    is_remembered = any(part.speaker is Speaker.MODEL and first.summary in part.text for part in asked.parts)
    assert is_remembered == REAL_AGENTS[name].agent.resumes
    assert len(world.progress.sessions) == (1 if is_remembered else 2)


async def test_a_cancelled_turn_ends_in_time_and_leaves_nothing_running(world: RealAgentWorld) -> None:
    world.model.script.on("Think about it", Hang())
    editing = asyncio.create_task(world.edit("Think about it"))
    await world.model.until_hanging()
    assert world.running()
    async with asyncio.timeout(STOPS_WITHIN_S):
        editing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await editing
        await nothing_runs(world)


async def test_a_key_that_the_model_does_not_take_fails_with_that_reason(name: str, world: RealAgentWorld) -> None:
    world.model.script.on("Make it American", Refuse(401, "this key is not known here"))
    with pytest.raises(EditError) as failed:
        await world.edit("Make it American")
    reason = str(failed.value)
    assert name in reason
    assert "key is not valid" in reason or "this key is not known here" in reason
    assert KEY not in reason
    assert KEY not in world.log.read_text(encoding="utf-8")


async def test_nothing_outside_the_copy_is_written_and_no_shell_is_run(world: RealAgentWorld, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    steps = WriteFile(str(outside), "x\n"), RunCommand(f"echo x > {outside}"), Say("I was not allowed to.")
    world.model.script.on("Write it elsewhere", *steps)
    result = await world.edit("Write it elsewhere")
    assert not outside.exists()
    assert world.model.requests
    assert result.reason.startswith("It wanted to do what is not allowed here")
