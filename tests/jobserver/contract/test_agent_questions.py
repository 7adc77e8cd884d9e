"""An agent asks with a form while it works: a real program, and the answer that is returned to it."""

import asyncio
import json
from pathlib import Path

import pytest
from support.worlds.agent_world import AgentWorld, agent_world

from bot.jobserver.editors.interface import EditResult
from bot.jobserver.store.records import Question

FORM = """
PORTS = {"type": "string", "title": "Port", "enum": ["80", "443"]}
def form(agent, **more):
    params = {"sessionId": agent.session_id, "mode": "form", "message": "Which port?",
              "requestedSchema": {"type": "object", "properties": {"port": PORTS}}}
    return agent.request("elicitation/create", {**params, **more})
"""
ASKS = FORM + """
def turn(agent, text):
    answer = form(agent)["result"]
    agent.say(f"{answer['action']} {answer.get('content')}")
"""  # fmt: skip


async def test_the_answer_is_returned_to_the_agent(tmp_path: Path) -> None:
    world = agent_world(tmp_path, ASKS)
    world.progress.reply = "443"
    assert await world.edit("Describe the port") == EditResult(summary="accept {'port': '443'}")
    (question,) = world.progress.questions
    assert question.text == "Which port?\n- 80\n- 443"
    assert [option.label for option in question.fields[0].options] == ["80", "443"]
    assert world.received("initialize")[0]["clientCapabilities"]["elicitation"] == {"form": {}}


async def test_an_unanswered_question_is_declined_and_ends_the_job(tmp_path: Path) -> None:
    """Once per turn: later questions are declined at once."""
    world = agent_world(tmp_path, ASKS.replace("answer = form(agent)", "form(agent); answer = form(agent)"))
    result = await world.edit("Describe the port")
    assert (result.summary, result.question) == ("decline None", "Which port?\n- 80\n- 443")
    assert result.question_fields == world.progress.questions[0].fields
    assert len(world.progress.questions) == 1


@pytest.mark.parametrize(
    "more",
    [
        "mode='url', url='https://evil.example', elicitationId='1'",
        "requestedSchema={'type': 'object', 'properties': {'password': {'type': 'string'}}}",
        "requestedSchema='nonsense'",
    ],
)
async def test_urls_secrets_and_malformed_questions_are_declined_unseen(tmp_path: Path, more: str) -> None:
    world = agent_world(tmp_path, ASKS.replace("form(agent)[", f"form(agent, {more})["))
    assert await world.edit("Describe the port") == EditResult(summary="decline None")
    assert world.progress.questions == []


async def test_time_spent_on_a_question_does_not_count(tmp_path: Path) -> None:
    """Otherwise a second answer would be too late."""
    world = agent_world(tmp_path, ASKS, time_limit=2.0)

    async def late(question: Question, _: object) -> str:
        await asyncio.sleep(2.5)  # longer than the limit under test
        return "80"

    world.progress.ask = late  # type: ignore[method-assign,assignment]
    assert (await world.edit("Describe the port")).summary == "accept {'port': '80'}"


async def test_a_question_is_answered_before_the_agent_is_cancelled(tmp_path: Path) -> None:
    """Otherwise some agents hang."""
    world = agent_world(tmp_path, ASKS.replace("    agent.say(", "    agent.cancelled.wait(60)\n    agent.say("))
    world.progress.reply = None
    editing = asyncio.create_task(world.edit("Describe the port"))
    await world.progress.has_asked.wait()
    editing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await editing
    assert _last(world, 2) == [{"action": "cancel"}, "session/cancel"]


async def test_the_time_limit_resumes_after_the_answer(tmp_path: Path) -> None:
    """An agent that hangs then is stopped."""
    world = agent_world(tmp_path, ASKS.replace("    agent.say(", "    time.sleep(60)\n    agent.say("), time_limit=2.0)
    world.progress.reply = "80"
    with pytest.raises(Exception, match="took longer than 2 s"):
        await world.edit("Describe the port")


def _last(world: AgentWorld, count: int) -> list[object]:
    """Returns the last things the agent received: a request's method, or the answer to its own."""
    lines = (world.root / "home" / "received.jsonl").read_text(encoding="utf-8").splitlines()[-count:]
    return [message.get("method") or message["result"] for message in map(json.loads, lines)]
