"""Posts by other apps: of people by a tool, of a workflow, and of a bot that repeats whatever it reads."""

import pytest
from support.worlds.ways_in_world import Job, WaysInWorld

from bot.workspace.model.entities import Message, User
from bot.workspace.model.sample_data import HOME

pytestmark = pytest.mark.promise("ways in")


def post(world: WaysInWorld, user_id: str, text: str, *, thread_ts: str | None = None) -> Message:
    """Posts as an app does."""
    state = world.workspace.state
    channel = state.find_channel("docs")
    assert channel is not None
    message = Message(channel.id, "", user_id, text, thread_ts=thread_ts, bot_id="B0OTHER01", app_id="A0OTHER01")
    return state.post(message)


def mention(world: WaysInWorld, text: str) -> str:
    return f"<@{world.workspace.app.bot_user_id}> {text}"


async def test_a_person_asks_and_steers_by_a_tool(world: WaysInWorld) -> None:
    asked = post(world, world.ana.id, mention(world, "Fix the guides"))
    created = await world.job("Fix the guides")
    await world.said("Started.", thread_ts=asked.ts)
    post(world, world.ana.id, "And the manual", thread_ts=asked.ts)
    await world.steered(created.job_id, "And the manual")
    assert len(world.cards()) == len(world.job_api.created) == 1


async def test_a_workflow_is_told_once_and_a_bot_never(world: WaysInWorld, caplog: pytest.LogCaptureFixture) -> None:
    """The bot mentions Pagehand with all that it repeats. That starts no conversation, and is not even refused."""
    flow = world.workspace.state.add_user(User("U0FLOW001", "flow", "Flow", HOME.id, is_bot=True, is_workflow_bot=True))
    echo = world.workspace.state.add_user(User("U0ECHO001", "echo", "Echo", HOME.id, is_bot=True))
    job = await world.begun()
    post(world, flow.id, mention(world, "Fix the weekly report"))
    answer = await world.said("a workflow can't ask me")
    said = ours(world, job)
    for message in said:
        post(world, echo.id, mention(world, message.text))
        post(world, echo.id, mention(world, message.text), thread_ts=job.card.ts)
    post(world, flow.id, mention(world, "Fix the weekly report"), thread_ts=answer.ts)
    await world.ben.say("docs", "And the manual", thread_ts=job.card.ts)
    await world.steered(job.id, "And the manual")
    await world.app.settled()
    assert ours(world, job) == said
    assert len(world.job_api.created) == 1
    assert "refused" not in caplog.text


def ours(world: WaysInWorld, job: Job) -> list[Message]:
    """Returns the messages of Pagehand in the channel and the job's thread."""
    shown = (*world.messages(), *world.messages(thread_ts=job.card.ts))
    return [message for message in shown if message.user == world.workspace.app.bot_user_id]
