"""Who is notified of a job's end, and how prominently."""

from pathlib import Path

import pytest
from support.servers.fake_job_api import Operation, refusing
from support.worlds.ways_in_world import LINK, OpenWorld, WaysInWorld

CHANNELS = """
[[projects]]
name = "docs"
project = "docs"

[[channels]]
id = "C0DOCS001"
broadcast = true

[[channels]]
id = "C0GENERAL"
mention = false
"""


@pytest.fixture
async def world(open_world: OpenWorld, scratch: Path) -> WaysInWorld:
    """Ends are also shown in #docs, and mention nobody in #general."""
    file = scratch / "projects.toml"
    file.write_text(CHANNELS)
    return await open_world(PAGEHAND_PROJECTS=str(file))


async def test_a_channel_can_be_shown_the_end(world: WaysInWorld) -> None:
    """The one with the pull request, once."""
    job = await world.finished()
    ended = await world.said("Done.", thread_ts=job.ts)
    assert ended.subtype == "thread_broadcast"
    assert world.ana.mention in ended.text
    others = [message for message in world.messages(thread_ts=job.ts) if message.ts != ended.ts]
    assert not [message for message in others if message.subtype == "thread_broadcast"]


@pytest.mark.full
async def test_a_quiet_job_shows_nothing_in_the_channel(world: WaysInWorld) -> None:
    """Asking quietly includes that."""
    await world.ana.command("docs", "/docs", "quiet Fix the guides")
    created, card = await world.job("Fix the guides"), await world.card()
    world.job_api.show(created.job_id, "completed", LINK)
    ended = await world.said("Done.", thread_ts=card.ts)
    assert ended.subtype is None
    assert world.ana.mention not in ended.text


@pytest.mark.full
async def test_a_channel_can_get_ends_without_mentions(world: WaysInWorld) -> None:
    """The end is still announced."""
    job = await world.begun(channel="general")
    world.job_api.show(job.id, "completed", LINK)
    ended = await world.said("Done.", channel="general", thread_ts=job.ts)
    assert (ended.subtype, world.ana.mention in ended.text) == (None, False)


async def test_waiting_is_explained_once_and_counted_on_the_card(world: WaysInWorld) -> None:
    """One sentence says for what and until when, however many wait."""
    job = await world.begun()
    world.job_api.fail(refusing(429, "too many", Retry_After="600"), Operation.MESSAGE)
    await world.ana.say("docs", "And the manual", thread_ts=job.ts)
    told = await world.said("limit is used up, at least until", thread_ts=job.ts)
    await world.ben.say("docs", "And the index", thread_ts=job.ts)
    await world.until(lambda: "Follow-ups: 2 waiting" in job.card.text, "both on the card")
    explained = [message for message in world.messages(thread_ts=job.ts) if "limit is used up" in message.text]
    assert [message.ts for message in explained if message.ts != job.ts] == [told.ts]
