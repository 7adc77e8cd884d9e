"""Direct messages: a job, and its thread."""

import pytest
from support.worlds.ways_in_world import LINK, OpenWorld, WaysInWorld, labels

from bot.notices.said import ButtonId

DIRECT = "pagehand"


async def test_a_direct_message_starts_a_job_and_replies_steer_it(world: WaysInWorld) -> None:
    """All in its thread, without a mention; thanks outside it get a heart, and start nothing."""
    asked = await world.ana.say(DIRECT, "Fix the guides")
    created, card = await world.job("Fix the guides"), await world.card("asked: Fix the guides\n", channel="ana")
    assert card.thread_ts == asked.ts
    await world.said("Started.", channel="ana", thread_ts=asked.ts)
    reply = await world.ana.say(DIRECT, "And the manual", thread_ts=asked.ts)
    await world.steered(created.job_id, "And the manual")
    await world.marked(reply, "white_check_mark")
    world.job_api.show(created.job_id, "completed", LINK)
    assert LINK in (await world.said("Done.", channel="ana", thread_ts=asked.ts)).text
    await world.marked(await world.ana.say(DIRECT, "Thanks a lot!"), "heart")
    assert len(world.job_api.created) == 1


async def test_each_direct_message_is_its_own_job_and_help_is_not_one(world: WaysInWorld) -> None:
    """Messages for nobody start nothing."""
    await world.ana.say(DIRECT, "help")
    await world.private_message(world.ana, "Pagehand hands documentation tasks")
    await world.ana.say(DIRECT, ":tada:")
    await world.ana.say(DIRECT, "// a note to myself")
    await world.ana.say(DIRECT, "Fix the guides")
    await world.ana.say(DIRECT, "!new Fix the manual")
    await world.job("Fix the guides")
    await world.job("Fix the manual")
    assert len(world.job_api.created) == 2


async def test_a_line_during_a_job_can_be_a_reply_or_a_job(world: WaysInWorld) -> None:
    """There is a button for each; the question is at the line."""
    await world.ana.say(DIRECT, "Fix the guides")
    created = await world.job("Fix the guides")
    await world.ana.say(DIRECT, "And the manual")
    asked = await world.private_message(world.ana, "And the manual")
    assert labels(asked) == ["New job", "Add to the one above"]
    assert (await world.ana.press(DIRECT, asked.ts, ButtonId.SEND_HELD)).ok
    await world.steered(created.job_id, "And the manual")
    await world.ana.say(DIRECT, "Fix the index")
    asked = await world.private_message(world.ana, "Fix the index")
    assert (await world.ana.press(DIRECT, asked.ts, ButtonId.DISCARD_HELD)).ok
    await world.job("Fix the index")
    assert len(world.job_api.created) == 2


@pytest.mark.full
async def test_without_a_scope_one_way_in_is_off_and_the_rest_work(
    open_world: OpenWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """One line in the log says so."""
    world = await open_world(without=("im:history",))
    await world.ana.say(DIRECT, "Fix the guides")
    await world.begun("Fix the manual")
    assert [created.prompt for created in world.job_api.created] == ["Fix the manual"]
    told = [record.getMessage() for record in caplog.records if "im:history" in record.getMessage()]
    assert len(told) == 1
    assert "direct messages start no jobs" in told[0]
