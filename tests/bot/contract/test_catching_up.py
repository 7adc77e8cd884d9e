"""What people do while nobody listens is read in Slack's history, by the whole bot over our own workspace."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.worlds.app_world import AppWorld, a_world

from bot.domain.notices.messages import Reaction
from bot.slack.rendering.words.questions import STOP_AS_OUTSIDER
from bot.workspace.people import Actor

PROMPT = "Fix the guides"


@pytest.fixture
async def world(database: str) -> AsyncIterator[AppWorld]:
    async with a_world(database) as made:
        made.workspace.faults.keeps_nothing = True
        yield made


@pytest.fixture
def ana(world: AppWorld) -> Actor:
    return world.workspace.people["ana"]


@pytest.fixture
def ben(world: AppWorld) -> Actor:
    return world.workspace.people["ben"]


@asynccontextmanager
async def nobody_listening(world: AppWorld) -> AsyncIterator[None]:
    """Stops every bot, and starts one. What was written meanwhile is never delivered."""
    await world.stop()
    yield
    await world.workspace.deliveries.stop()
    await world.start()


async def until_read(world: AppWorld) -> None:
    """Waits until nothing of Slack's history is left to read."""

    async def is_read() -> bool:
        return (await world.sql("SELECT count(*) FROM gaps")) == [(0,)]

    await world.until_true(is_read)


async def test_replies_are_sent_in_order(world: AppWorld) -> None:
    await world.start()
    (job,) = await world.begin(PROMPT)
    async with nobody_listening(world):
        for words in ("first", "second", "third"):
            await world.reply(PROMPT, words)
        await world.workspace.people["ana"].say("docs", "// between us", thread_ts=world.card_ts(PROMPT))
    await world.until_steered(job, "first", "second", "third")
    await until_read(world)
    await world.settled()
    await world.check()


async def test_what_was_heard_before_is_not_sent_again(world: AppWorld) -> None:
    await world.start()
    (job,) = await world.begin(PROMPT)
    await world.reply(PROMPT, "heard")
    await world.until_steered(job, "heard")
    async with nobody_listening(world):
        await world.reply(PROMPT, "missed")
    await world.until_steered(job, "heard", "missed")
    await until_read(world)
    await world.settled()
    await world.check()


async def test_words_count_as_they_were_edited(world: AppWorld, ana: Actor) -> None:
    await world.start()
    (job,) = await world.begin(PROMPT)
    async with nobody_listening(world):
        message = await ana.say("docs", "old words", thread_ts=world.card_ts(PROMPT))
        await ana.edit("docs", message.ts, "new words")
    await world.until_steered(job, "new words")
    await world.until_marked(message, Reaction.ACCEPTED)


async def test_a_mention_and_a_direct_message_start_jobs(world: AppWorld, ana: Actor, ben: Actor) -> None:
    await world.start()
    await world.begin(PROMPT)
    await ana.say("pagehand", "Write the index")
    await world.fake_job_api.until(lambda: "Write the index" in _prompts(world))
    async with nobody_listening(world):
        await ben.say("docs", "@pagehand Write the reference")
        await ben.say("docs", "Not for a bot")
        await ana.say("pagehand", "!new Write the glossary")
    expected = {PROMPT, "Write the index", "Write the reference", "Write the glossary"}
    await world.fake_job_api.until(lambda: _prompts(world) == expected)
    await until_read(world)
    assert len(world.fake_job_api.created) == len(expected)


async def test_a_mention_in_somebodys_thread_starts_a_job(world: AppWorld, ana: Actor, ben: Actor) -> None:
    await world.start()
    root = await ana.say("docs", "The reference is old")
    async with nobody_listening(world):
        await ben.say("docs", "@pagehand Write it anew", thread_ts=root.ts)
    await world.fake_job_api.until(lambda: len(world.fake_job_api.created) == 1)
    assert "Write it anew" in world.fake_job_api.created[0].prompt


async def test_a_reaction_asks_whether_to_stop_once(world: AppWorld, ana: Actor, ben: Actor) -> None:
    await world.start()
    await world.begin(PROMPT)
    for _ in range(2):
        async with nobody_listening(world):
            if not world.workspace.state.message(world.workspace.channels["docs"], world.card_ts(PROMPT)).reactions:
                await ben.react("docs", world.card_ts(PROMPT), "x")
        await until_read(world)
    await world.workspace.changes.wait_for(lambda: STOP_AS_OUTSIDER in world.private_text("ben"))
    await world.settled()
    assert world.private_text("ben").count(STOP_AS_OUTSIDER) == 1
    assert (await world.state(PROMPT)).state.job.status == "active"  # type: ignore[union-attr]  # it has begun


async def test_reactions_from_before_this_version_ask_nothing(world: AppWorld, ben: Actor) -> None:
    await world.start()
    await world.begin(PROMPT)
    async with nobody_listening(world):
        await ben.react("docs", world.card_ts(PROMPT), "x")
        for table in ("listening", "gaps"):
            await world.sql(f"DELETE FROM {table}")  # noqa: S608 - our own names
    await until_read(world)
    async with nobody_listening(world):
        pass
    await until_read(world)
    await world.settled()
    assert world.private_text("ben") == ""


def _prompts(world: AppWorld) -> set[str]:
    return {each.prompt for each in world.fake_job_api.created}
