"""An agent's turns: what it does, what it says, and how it goes on."""

from pathlib import Path

from support.worlds.agent_world import agent_world

from bot.jobserver.editors.interface import EditResult
from bot.jobserver.models import PlanStep, StepStatus

EDITS = """
def turn(agent, text):
    agent.say("I will look at it.")
    agent.update("plan", entries=[{"content": "Write it", "priority": "high", "status": "in_progress"}])
    agent.call("1", "Write a.md", locations=[{"path": str(Path.cwd() / "a.md")}])
    assert agent.ask("1") == "allow_once"
    Path("a.md").write_text("written")
    agent.update("tool_call_update", toolCallId="1", status="completed")
    agent.say("I wrote ")
    agent.say("`a.md`.")
"""


async def test_an_edit_with_its_plan_its_steps_and_its_answer(tmp_path: Path) -> None:
    world = agent_world(tmp_path, EDITS)
    assert await world.edit("Write a.md") == EditResult(summary="I wrote `a.md`.")
    assert (world.copy / "a.md").read_text() == "written"
    assert world.progress.plans == [(PlanStep(title="Write it", status=StepStatus.IN_PROGRESS),)]
    assert world.progress.activities == ["Write a.md"]
    assert world.progress.sessions == ["session-1"]
    assert world.prompts()[0].endswith("\n\nWrite a.md")
