"""What became of messages, as Slack's history shows it."""

from collections.abc import AsyncIterator

import pytest
from support.worlds.slack_world import SlackWorld, slack_world

from bot.errors import ChatNotInChannel
from bot.slack.receiving.current_messages import SlackCurrentMessages
from bot.slack.sending.conversations import SlackChannels


@pytest.fixture
async def world() -> AsyncIterator[SlackWorld]:
    async with slack_world() as made:
        yield made


def versions_of(world: SlackWorld) -> SlackCurrentMessages:
    return SlackCurrentMessages(world.client, world.identity, SlackChannels(world.client))


async def test_a_thread_shows_what_became_of_its_messages(world: SlackWorld) -> None:
    ana = world.workspace.people["ana"]
    docs = ana.channel("docs").id
    root = await ana.say("docs", "Fix the guide")
    same, edited, gone = [await ana.say("docs", words, thread_ts=root.ts) for words in ("same", "before", "gone")]
    after = await ana.edit("docs", edited.ts, "after")
    await ana.delete("docs", gone.ts)
    versions = await versions_of(world).versions(docs, root.ts, since_ts=same.ts)
    assert versions.keys() >= {same.ts, edited.ts}
    assert gone.ts not in versions
    assert versions[same.ts] is None
    now = versions[edited.ts]
    assert now is not None
    assert (now.text, now.edited_at, now.person.id) == ("after", after.edited_ts, ana.id)
    assert (now.thread_ts, now.withdrawn, now.mentions_us) == (root.ts, False, False)


async def test_an_edited_post_by_a_tool_is_read_like_a_persons(world: SlackWorld) -> None:
    ana = world.workspace.people["ana"]
    root = await ana.say("docs", "Fix the guide")
    reply = await ana.say("docs", "before", thread_ts=root.ts)
    reply.bot_id = "B0TOOL001"
    await ana.edit("docs", reply.ts, "after")
    now = (await versions_of(world).versions(ana.channel("docs").id, root.ts, since_ts=reply.ts))[reply.ts]
    assert now is not None
    assert (now.text, now.person.id) == ("after", ana.id)


async def test_a_request_whose_mention_was_removed_shows_that(world: SlackWorld) -> None:
    ana = world.workspace.people["ana"]
    root = await ana.say("docs", f"<@{world.identity.bot_user_id}> Fix the guide")
    await ana.edit("docs", root.ts, "Fix the guide, somebody")
    now = (await versions_of(world).versions(ana.channel("docs").id, root.ts, since_ts=root.ts))[root.ts]
    assert now is not None
    assert not now.mentions_us


@pytest.mark.parametrize("answered", [False, True])
async def test_a_deleted_first_message_is_missing(world: SlackWorld, *, answered: bool) -> None:
    """Slack answers that there is no such thread or, if there are replies, shows a tombstone."""
    ana = world.workspace.people["ana"]
    root = await ana.say("docs", "Fix the guide")
    if answered:
        await ana.say("docs", "Really", thread_ts=root.ts)
    await ana.delete("docs", root.ts)
    versions = await versions_of(world).versions(ana.channel("docs").id, root.ts, since_ts=root.ts)
    assert root.ts not in versions


async def test_lines_outside_threads_are_read_from_the_first_one_on(world: SlackWorld) -> None:
    ana = world.workspace.people["ana"]
    earlier, line = [await ana.say("docs", words) for words in ("earlier", "line")]
    await ana.edit("docs", line.ts, "line two")
    versions = await versions_of(world).versions(ana.channel("docs").id, "", since_ts=line.ts)
    assert earlier.ts not in versions
    now = versions[line.ts]
    assert now is not None
    assert now.edited_at


async def test_a_channel_that_slack_does_not_show_is_no_deletion(world: SlackWorld) -> None:
    ana = world.workspace.people["ana"]
    root = await ana.say("general", "Fix the guide")
    with pytest.raises(ChatNotInChannel):
        await versions_of(world).versions(ana.channel("general").id, root.ts, since_ts=root.ts)
