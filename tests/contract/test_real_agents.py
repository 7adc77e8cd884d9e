"""Coding agents as they come from their registry, driven by the agent editor; only their model is ours.

Left out, saying so, where a program cannot be installed.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.agents.agent_world import AgentWorld, agent_world
from support.agents.no_sandbox import NoSandbox
from support.agents.packages import NotInstalled
from support.agents.real_agents import KEY, REAL_AGENTS
from support.servers.model_script import Hang, Refuse, RunCommand, Say, Speaker, WriteFile

from bot.jobserver.errors import EditError

AMERICAN = "# Colors\n\nA color.\n"
SHORTER = "# Colors\n"
STOPS_WITHIN_S = 5.0


@pytest.fixture(params=sorted(REAL_AGENTS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def world(name: str, tmp_path: Path) -> AsyncIterator[AgentWorld]:
    try:
        async with agent_world(REAL_AGENTS[name], NoSandbox(), tmp_path) as world:
            yield world
            assert not world.running()
    except NotInstalled as reason:
        pytest.skip(str(reason))


async def test_an_edit_and_a_follow_up_that_remembers_it(name: str, world: AgentWorld) -> None:
    page = world.seen(world.page)
    world.model.script.on("Make it American", WriteFile(page, AMERICAN), Say("I made **it** American."))
    world.model.script.on("Make that shorter", WriteFile(page, SHORTER), Say("Only the title is left."))

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
    remembers = any(part.speaker is Speaker.MODEL and first.summary in part.text for part in asked.parts)
    if REAL_AGENTS[name].agent.resumes:
        assert remembers
        assert len(world.progress.sessions) == 1
    else:
        assert not remembers
        assert asked.holds(first.summary)


async def test_a_cancelled_turn_ends_in_time_and_leaves_nothing_running(world: AgentWorld) -> None:
    world.model.script.on("Think about it", Hang())
    editing = asyncio.create_task(world.edit("Think about it"))
    await world.model.until_hanging()
    assert world.running()
    began = time.monotonic()
    editing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await editing
    assert time.monotonic() - began < STOPS_WITHIN_S
    assert not world.running()


async def test_a_model_that_refuses_the_key_fails_the_job_with_that_reason(world: AgentWorld) -> None:
    world.model.script.on("Make it American", Refuse(401, "this key is not known here"))
    with pytest.raises(EditError) as failed:
        await world.edit("Make it American")
    print(failed.value)
    assert KEY not in str(failed.value)


async def test_what_leaves_the_copy_is_refused_and_the_shell_changes_nothing(world: AgentWorld, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    world.model.script.on("Write outside", WriteFile(str(outside), "x\n"), RunCommand("echo x > ran.md"), Say("Done."))
    try:
        print(await world.edit("Write outside"))
    except EditError as e:
        print("ERR", e)
    print(world.log.read_text())
    print([[p.text[:300] for p in r.parts if p.speaker=="tool"] for r in world.model.requests])
    assert not outside.exists()
    print((world.workspace.copy/"ran.md").exists())
