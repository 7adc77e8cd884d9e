"""Every way in that is a message or a reaction, from the person to the agent: the whole bot over the workspace."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.worlds.app_world import PATIENCE, AppWorld, a_world

from bot.workspace.model.entities import Message
from bot.workspace.people import Actor


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[AppWorld]:
    async with a_world(f"sqlite:///{tmp_path}/pagehand.db") as made:
        await made.start()
        yield made


@pytest.fixture
def ana(world: AppWorld) -> Actor:
    return world.workspace.people["ana"]


async def begun(world: AppWorld, prompt: str) -> str:
    """Waits till the job API has a job for this prompt, and returns its id."""
    await world.fake_job_api.until(lambda: any(job.prompt == prompt for job in world.fake_job_api.created), PATIENCE)
    return world.fake_job_api.job_of(prompt)


async def card_in(world: AppWorld, channel: str, ts: str) -> Message:
    """Waits for the card in the thread of a person's message."""

    def ours() -> list[Message]:
        answers = world.workspace.channels.thread(channel, ts)[1:]
        return [message for message in answers if message.user == world.workspace.app.bot_user_id]

    return (await world.workspace.changes.wait_for(ours, PATIENCE))[0]


async def test_a_mention_is_answered_in_its_own_thread_and_steered_there(world: AppWorld, ana: Actor) -> None:
    """One message in two events is one job; replies need no mention; what is between people is not sent."""
    asked = await ana.say("docs", f"@{world.workspace.app.name} Replace <colour> in the guides")
    job = await begun(world, "Replace <colour> in the guides")
    card = await card_in(world, "docs", asked.ts)
    assert card.thread_ts == asked.ts
    for words in ("// just us", "@ben look", ":tada:", "and in the manual"):
        await ana.say("docs", words, thread_ts=asked.ts)
    await world.until_steered(job, "and in the manual")
    assert len(world.fake_job_api.created) == 1


async def test_a_direct_message_is_a_job_and_its_thread_steers_it(world: AppWorld, ana: Actor) -> None:
    """No channel, no mention, no command."""
    asked = await ana.say("pagehand", "Explain the ports")
    job = await begun(world, "Explain the ports")
    await card_in(world, "ana", asked.ts)
    await ana.say("pagehand", "Now make it shorter", thread_ts=asked.ts)
    await world.until_steered(job, "Now make it shorter")


@pytest.mark.parametrize("way", ["word", "mention", "reaction", "button"])
async def test_a_job_is_stopped_in_every_way(world: AppWorld, ana: Actor, way: str) -> None:
    """This job API cannot cancel: the agent is told to stop."""
    asked = await ana.say("docs", f"@{world.workspace.app.name} Rewrite everything")
    job = await begun(world, "Rewrite everything")
    card = await card_in(world, "docs", asked.ts)
    match way:
        case "word":
            await ana.say("docs", "!stop", thread_ts=asked.ts)
        case "mention":
            await ana.say("docs", f"@{world.workspace.app.name} stop", thread_ts=asked.ts)
        case "reaction":
            await ana.react("docs", card.ts, "x")
        case _:
            await world.workspace.changes.wait_for(lambda: "stop_job" in str(card.blocks), PATIENCE)
            assert (await ana.press("docs", card.ts, "stop_job")).ok
    await world.until_steered(job, "Stop. Change nothing more.")


async def test_what_asks_for_nothing_is_helped_privately(world: AppWorld, ana: Actor) -> None:
    """A lone mention starts nothing; nobody else sees the help."""
    await ana.say("docs", f"@{world.workspace.app.name}")
    await world.workspace.changes.wait_for(lambda: "Pagehand hands a documentation task" in world.told("ana"), PATIENCE)
    assert world.told("ben") == ""
    assert world.fake_job_api.created == []


async def test_new_words_of_a_mention_are_offered_once_it_was_sent(world: AppWorld, ana: Actor) -> None:
    """What the agent has stays as it was: whoever edits is asked whether the new words go after it."""
    name = world.workspace.app.name
    asked = await ana.say("docs", f"@{name} Explain the prots")
    await begun(world, "Explain the prots")
    await card_in(world, "docs", asked.ts)
    await ana.edit("docs", asked.ts, f"@{name} Explain the ports")
    await world.workspace.changes.wait_for(lambda: "Explain the ports" in world.told("ana"), PATIENCE)
    assert world.told("ben") == ""
