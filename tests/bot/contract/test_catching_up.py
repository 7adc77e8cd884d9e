"""What people do while nobody listens is read in Slack's history, by the whole bot over our own workspace."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.worlds.app_world import AppWorld, a_world, until

from bot.cli.backup import mark_in_doubt
from bot.notices.said import ButtonId
from bot.scheduler.retention import DAY, HELD_DAYS, RetentionSweeper
from bot.workspace.people import Actor

PROMPT = "Fix the guides"
HOUR = 3_600.0


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

    await until(is_read)


@pytest.mark.either_database
async def test_replies_are_sent_in_order_and_none_that_was_heard(world: AppWorld) -> None:
    await world.start()
    (job,) = await world.begin(PROMPT)
    await world.reply(PROMPT, "heard")
    await world.until_steered(job, "heard")
    async with nobody_listening(world):
        for words in ("first", "second", "third"):
            await world.reply(PROMPT, words)
        await world.workspace.people["ana"].say("docs", "// between us", thread_ts=world.card_ts(PROMPT))
    await world.until_steered(job, "heard", "first", "second", "third")
    await until_read(world)
    await world.check()


@pytest.mark.full
async def test_a_mention_and_a_direct_message_start_jobs(world: AppWorld, ana: Actor, ben: Actor) -> None:
    await world.start()
    await world.begin(PROMPT)
    await ana.say("pagehand", "Write the index")
    await world.fake_job_api.until(lambda: "Write the index" in _prompts(world))
    root = await ana.say("docs", "The reference is old")
    async with nobody_listening(world):
        await ben.say("docs", "@pagehand Write it anew", thread_ts=root.ts)
        await ben.say("docs", "@pagehand Write the reference")
        await ben.say("docs", "Not for a bot")
        await ana.say("pagehand", "!new Write the glossary")
    await world.fake_job_api.until(lambda: len(world.fake_job_api.created) == 5)
    await until_read(world)
    expected = {PROMPT, "Write the index", "Write the reference", "Write the glossary"}
    (in_thread,) = _prompts(world) - expected
    assert "Write it anew" in in_thread
    assert len(world.fake_job_api.created) == 5


@pytest.mark.first(answer=2)
@pytest.mark.either_database
@pytest.mark.parametrize(
    ("restored", "answer"),
    [(False, ButtonId.SEND_HELD), (True, ButtonId.SEND_HELD), (False, ButtonId.DISCARD_HELD), (False, "none in time")],
)
async def test_what_is_late_is_done_only_after_a_yes(database: str, answer: str, *, restored: bool) -> None:
    """What was written long before it is read, or after the backup that the database was restored from."""
    async with a_world(database, slack_behind=0.0 if restored else HOUR) as world:
        world.workspace.faults.keeps_nothing = True
        ben = world.workspace.people["ben"]
        await world.start()
        (job,) = await world.begin(PROMPT)
        await world.settled()
        async with nobody_listening(world):
            await ben.say("docs", "Mend the index", thread_ts=world.card_ts(PROMPT))
            await ben.say("docs", "@pagehand Write the reference")
            if restored:
                await mark_in_doubt(database)
            else:
                await world.sql("UPDATE listening SET until = until - :ago", ago=2 * HOUR)
        await until_read(world)
        await world.workspace.changes.wait_for(lambda: len(ben.ephemerals("docs")) == 2)
        asked = sorted(ben.ephemerals("docs"), key=lambda each: each.text)
        for question, words in zip(asked, ("Mend the index", "Write the reference"), strict=True):
            assert question.text.startswith(f"You wrote this while I was away. Send it?\n&gt;{words}")
        assert world.fake_job_api.messages == []
        if answer == "none in time":
            await _forget_replies(world)
            await ben.press("docs", asked[0].ts, ButtonId.SEND_HELD)
        else:
            for question in asked:
                await ben.press("docs", question.ts, answer)
        if answer == ButtonId.SEND_HELD:
            await world.until_steered(job, "Mend the index")
            await world.fake_job_api.until(lambda: "Write the reference" in _prompts(world))
        else:
            await world.workspace.changes.wait_for(lambda: len(ben.ephemerals("docs")) == 4)
            assert (world.fake_job_api.follow_ups(job), _prompts(world)) == ([], {PROMPT})


async def _forget_replies(world: AppWorld) -> None:
    """What nobody answered about is deleted, as after a week."""
    await world.sql("UPDATE requests SET recorded_at = recorded_at - :age", age=(HELD_DAYS + 1) * DAY)
    await RetentionSweeper(world.instances[0].edges.store).sweep()


def _prompts(world: AppWorld) -> set[str]:
    return {each.prompt for each in world.fake_job_api.created}
