"""Posts by apps: one that a tool makes for a person is theirs; a workflow is told who can ask; a bot gets no answer."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest
from support.fakes.slack_payloads import CHANGED_AT, edit, event
from support.fakes.slack_reading import FakeSlackReading
from support.worlds.listening_world import BOT, IDENTITY, ListeningWorld, listening

from bot.domain.people.members import ChannelInfo, Member
from bot.domain.requests.request import Arrival
from bot.errors import ChatError, ChatMissingScope, ChatUnreachable, NotRecorded
from bot.slack.receiving import history

pytestmark = pytest.mark.promise("posts by tools")

ECHO, FLOW, GONE = "U0ECHO", "U0FLOW", "U0GONE"
CHANNEL = ChannelInfo("C1", "docs", is_shared_outside=False, is_private=False)
TOOL = {
    "bot_id": "B0TOOL",
    "app_id": "A0TOOL",
    "bot_profile": {"id": "B0TOOL", "app_id": "A0TOOL", "name": "Tool", "deleted": False, "team_id": "T1"},
}
"""What Slack adds to a post that an app makes, also with a person's token (chat.postMessage)."""


@pytest.fixture
def reading() -> FakeSlackReading:
    echo = Member(ECHO, "echo", "T1", is_guest=False, is_bot=True)
    flow = Member(FLOW, "flow", "T1", is_guest=False, is_bot=True, is_workflow=True)
    return FakeSlackReading(members={ECHO: echo, FLOW: flow, GONE: None})


@pytest.fixture
async def world(reading: FakeSlackReading) -> AsyncIterator[ListeningWorld]:
    async with listening(members=reading) as made:
        yield made


def mention(**changes: Any) -> dict[str, Any]:
    return event(**{"text": f"<@{BOT}> Fix the guides", "thread_ts": None} | TOOL | changes)


def deletion(**changes: Any) -> dict[str, Any]:
    previous = edit(**TOOL | changes)["event"]["previous_message"]
    deleted = {"subtype": "message_deleted", "deleted_ts": previous["ts"], "ts": CHANGED_AT}
    return event(**deleted, user=None, text=None, thread_ts=None, hidden=True, previous_message=previous)


@pytest.mark.parametrize(
    ("payload", "call"),
    [
        (mention(), "start"),
        (mention(type="app_mention"), "start"),
        (event(**TOOL), "receive"),
        (event(**TOOL, subtype="thread_broadcast"), "receive"),
        (event(**TOOL | {"bot_profile": None}), "receive"),
        (event(**TOOL, thread_ts=None, channel="D0ANA", channel_type="im"), "start"),
        (edit(**TOOL), "revise"),
        (deletion(), "revise"),
    ],
    ids=str,
)
async def test_a_persons_post_by_a_tool_counts_as_theirs(
    world: ListeningWorld, reading: FakeSlackReading, payload: dict[str, Any], call: str
) -> None:
    """The first is handled once its author was looked up, and sent again; the next ones are acknowledged at once."""
    assert (await world.take(payload)).status == HTTPStatus.SERVICE_UNAVAILABLE
    assert reading.asked == []
    await world.app.drain(5)
    assert (await world.take(payload)).status == HTTPStatus.OK
    assert [name for name, *_ in world.service.calls] == [call, call]
    assert world.service.calls[0] == world.service.calls[1]
    assert reading.asked == ["member U0ANA"]


@pytest.mark.parametrize("author", [ECHO, FLOW, GONE])
@pytest.mark.parametrize("made", [event, mention, edit, deletion])
async def test_nothing_is_recorded_for_a_bot(world: ListeningWorld, author: str, made: Any) -> None:
    """Each account is looked up once, also an unknown one. Only a workflow's mention, a new one, has an effect."""
    payload = made(**TOOL, user=author)
    for _ in range(3):
        await world.take(payload)
        await world.app.drain(5)
    told = [("introduce", "T1", "C1", FLOW)] * 3 if (author, made) == (FLOW, mention) else []
    assert world.service.calls == told
    assert (await world.take(payload)).status == HTTPStatus.OK


@pytest.mark.parametrize(
    "payload",
    [
        event(**TOOL, thread_ts=None),
        mention(user=BOT),
        mention(bot_id=IDENTITY.bot_id),
        mention(subtype="bot_message", user=None),
    ],
    ids=["to others", "ours", "by our app", "no author"],
)
async def test_nobody_is_looked_up_for_what_cannot_concern_us(
    world: ListeningWorld, reading: FakeSlackReading, payload: dict[str, Any]
) -> None:
    assert (await world.take(payload)).status == HTTPStatus.OK
    await world.app.drain(5)
    assert (reading.asked, world.service.calls) == ([], [])


async def test_catching_up_counts_a_persons_posts_by_a_tool(world: ListeningWorld) -> None:
    missed = history.written(event(**TOOL)["event"], CHANNEL, IDENTITY)
    with pytest.raises(NotRecorded):
        await world.app.handle_past(missed, Arrival.LATE)
    await world.app.drain(5)
    await world.app.handle_past(missed, Arrival.LATE)
    assert [reply.arrival for reply in world.service.received] == [Arrival.LATE] * 2


@pytest.mark.parametrize("fault", [ChatUnreachable("no connection"), ChatMissingScope(("users:read",))])
async def test_a_post_whose_author_cannot_be_looked_up_is_sent_again(
    world: ListeningWorld, reading: FakeSlackReading, fault: ChatError
) -> None:
    reading.faults.append(fault)
    statuses = []
    for _ in range(3):
        statuses.append((await world.take(event(**TOOL))).status)
        await world.app.drain(5)
    assert statuses == [HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.OK]
    assert reading.asked == ["member U0ANA"] * 2
