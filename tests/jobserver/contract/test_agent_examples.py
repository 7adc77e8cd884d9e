"""The settings that the README documents for agents that are not known by name, with their programs."""

import asyncio
from pathlib import Path

import pytest
from support.agents.packages import NotInstalled
from support.agents.real_agents import EXAMPLE_AGENTS, KEY
from support.servers.model_script import Refuse, RunCommand, Say, WriteFile
from support.worlds.real_agent_world import PAGE, real_agent_world

from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.settings.sandbox import SandboxSettings

AMERICAN = "# Colors\n\nA color.\n"


@pytest.mark.full
@pytest.mark.parametrize("name", EXAMPLE_AGENTS)
async def test_an_agent_works_with_the_documented_settings_and_without_the_key(name: str, tmp_path: Path) -> None:
    """In the sandbox: it edits, continues, writes nowhere else, and its model's errors are its failures."""
    outside = tmp_path / "outside.md"
    try:
        sandbox = await open_sandbox(SandboxSettings(egress=(), allow_root=True), tmp_path / "data")
        async with real_agent_world(EXAMPLE_AGENTS[name], sandbox, tmp_path) as world:
            page, script = world.path(PAGE), world.model.script
            script.on("Make it American", WriteFile(page, AMERICAN), Say("I made **it** American."))
            script.on("Go on", RunCommand(f"echo x > {outside}"), WriteFile(str(outside), "x\n"), Say("There."))
            script.on("Once more", Refuse(401, "this key is not known here"))
            first = await world.edit("Make it American")
            assert world.page.read_text(encoding="utf-8") == AMERICAN
            assert first.summary == "I made **it** American."
            assert world.progress.total.sent > 0 < world.progress.total.answered, "as the relay counts them"
            assert {request.key for request in world.model.requests} == {KEY}

            world.restart()
            await world.edit("Go on")
            assert world.model.requests[-1].holds("Make it American")
            assert world.model.requests[-1].holds(first.summary)
            assert not outside.exists()

            with pytest.raises(EditError, match="key is not valid"):
                await world.edit("Once more")
            assert not await asyncio.to_thread(world.files_holding, KEY)
            assert KEY not in world.log.read_text(encoding="utf-8")
            assert not world.running()
    except (NotInstalled, JobServerError) as reason:
        if isinstance(reason, EditError):
            raise
        pytest.skip(str(reason))
