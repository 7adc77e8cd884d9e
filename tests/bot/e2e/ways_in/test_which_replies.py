"""Which replies in a thread go to the agent, and how: each mode, replies to other people, rapid ones."""

from pathlib import Path

import pytest
from support.worlds.ways_in_world import OpenWorld, WaysInWorld, labels

from bot.notices.said import ButtonId

DOCS = "C0DOCS001"
ASKED_FIRST = "Send this to the agent?"


async def test_everyones_replies_count_by_default(world: WaysInWorld) -> None:
    """Each is marked."""
    job = await world.begun()
    said = await world.ben.say("docs", "And the manual", thread_ts=job.ts)
    await world.steered(job.id, "And the manual")
    await world.marked(said, "white_check_mark")


async def test_a_reply_to_another_person_is_not_sent(world: WaysInWorld) -> None:
    """A leading mention of another person, emoji alone, and messages that begin with `//`; none is marked."""
    job = await world.begun()
    asides = [
        await world.ana.say("docs", words, thread_ts=job.ts)
        for words in ("@ben what do you think?", ":tada: :+1:", "// between us", "@writers have a look")
    ]
    await world.ana.say("docs", "Ask @ben about the manual", thread_ts=job.ts)
    await world.steered(job.id, "Ask @ben about the manual")
    assert [list(aside.reactions) for aside in asides] == [[], [], [], []]


async def test_thanks_after_the_end_get_a_heart(world: WaysInWorld) -> None:
    """The agent gets nothing; a message that asks for more goes to it."""
    job = await world.finished()
    thanks = await world.ben.say("docs", "Great, thanks! :tada:", thread_ts=job.ts)
    await world.marked(thanks, "heart")
    await world.ben.say("docs", "Thanks, and now the manual", thread_ts=job.ts)
    await world.steered(job.id, "Thanks, and now the manual")


@pytest.mark.full
async def test_in_participants_mode_others_are_asked_in_slack(open_world: OpenWorld) -> None:
    """`Send` sends this one; the next one is asked about again."""
    world = await open_world(PAGEHAND_REPLIES="participants")
    job = await world.begun()
    held = await world.ben.say("docs", "And the manual", thread_ts=job.ts)
    asked = await world.private_message(world.ben, ASKED_FIRST)
    assert labels(asked) == ["Send", "Send all I write here", "Don't send"]
    assert ASKED_FIRST not in "".join(message.text for message in world.private(world.ana))
    await world.ana.say("docs", "Mine needs no question", thread_ts=job.ts)
    await world.steered(job.id, "Mine needs no question")
    assert (await world.ben.press("docs", asked.ts, ButtonId.SEND_HELD)).ok
    await world.steered(job.id, "Mine needs no question", "And the manual")
    await world.marked(held, "white_check_mark")
    await world.ben.say("docs", "And the index", thread_ts=job.ts)
    await world.private_message(world.ben, "And the index")


async def test_in_participants_mode_all_replies_of_a_person_can_be_sent(open_world: OpenWorld) -> None:
    """Waiting ones are sent in written order, and later ones without a question."""
    world = await open_world(PAGEHAND_REPLIES="participants")
    job = await world.begun()
    await world.ben.say("docs", "And the manual", thread_ts=job.ts)
    await world.private_message(world.ben, "And the manual")
    await world.ben.say("docs", "And the index", thread_ts=job.ts)
    asked = await world.private_message(world.ben, "And the index")
    assert (await world.ben.press("docs", asked.ts, ButtonId.SEND_ALL_HELD)).ok
    await world.steered(job.id, "And the manual", "And the index")
    await world.ben.say("docs", "And the glossary", thread_ts=job.ts)
    await world.steered(job.id, "And the manual", "And the index", "And the glossary")


async def test_in_participants_mode_a_refusal_sends_nothing(open_world: OpenWorld) -> None:
    """It is confirmed privately."""
    world = await open_world(PAGEHAND_REPLIES="participants")
    job = await world.begun()
    held = await world.ben.say("docs", "I would not do that", thread_ts=job.ts)
    asked = await world.private_message(world.ben, ASKED_FIRST)
    assert (await world.ben.press("docs", asked.ts, ButtonId.DISCARD_HELD)).ok
    await world.private_message(world.ben, "your reply wasn't sent")
    await world.ana.say("docs", "Go on", thread_ts=job.ts)
    await world.steered(job.id, "Go on")
    assert not held.reactions


@pytest.mark.full
async def test_in_mentions_mode_the_next_mention_includes_messages_since(open_world: OpenWorld) -> None:
    """They are separated as context, each message once."""
    world = await open_world(PAGEHAND_REPLIES="mentions")
    job = await world.begun()
    await world.ben.say("docs", "The port is 8443", thread_ts=job.ts)
    await world.ana.say("docs", f"{world.bot} use that port", thread_ts=job.ts)
    await world.steered(job.id, "use that port")
    await world.ben.say("docs", "And the host is example.org", thread_ts=job.ts)
    await world.ana.say("docs", f"{world.bot} use that host", thread_ts=job.ts)
    await world.steered(job.id, "use that port", "use that host")
    first, second = world.job_api.follow_ups(job.id)
    assert "> The port is 8443" in first
    assert "> And the host is" in second
    assert "8443" not in second


@pytest.mark.full
async def test_the_reply_mode_can_be_set_for_a_channel(open_world: OpenWorld, scratch: Path) -> None:
    """In the projects file; every other channel follows the setting."""
    file = scratch / "projects.toml"
    file.write_text(
        f'[[projects]]\nname = "docs"\nproject = "docs"\n[[channels]]\nid = "{DOCS}"\nreplies = "mentions"\n'
    )
    world = await open_world(PAGEHAND_PROJECTS=str(file))
    job = await world.begun()
    await world.ben.say("docs", "Hm", thread_ts=job.ts)
    await world.ben.say("docs", f"{world.bot} and the manual", thread_ts=job.ts)
    await world.steered(job.id, "and the manual")
    elsewhere = await world.begun("Fix the manual", channel="general")
    await world.ben.say("general", "And the index", thread_ts=elsewhere.ts)
    await world.steered(elsewhere.id, "And the index")


@pytest.mark.full
async def test_rapid_replies_in_slack_are_one_message(open_world: OpenWorld) -> None:
    """In written order, each with its own mark; another person's are sent separately."""
    world = await open_world(PAGEHAND_MERGE_SECONDS="2")
    job = await world.begun()
    said = [
        await world.ana.say("docs", words, thread_ts=job.ts) for words in ("And the manual", "and the index", "too")
    ]
    said.append(await world.ben.say("docs", "But not the glossary", thread_ts=job.ts))
    await world.steered(job.id, "And the manual\n\nand the index\n\ntoo", "But not the glossary")
    for message in said:
        await world.marked(message, "white_check_mark")
