"""Pagehand introduces itself once in a channel that it was invited to, whatever happens to Slack and to itself."""

from dataclasses import replace
from typing import Any

import pytest
from support.fakes.recording_service import RecordingService
from support.worlds.core_world import CoreWorld
from support.worlds.listening_world import listening_app

from bot.domain.people import ChannelInfo
from bot.errors import ChatNotInChannel, ChatRejected, ChatUncertain
from bot.notices.answers import Introduction


def introduced_in(world: CoreWorld) -> list[str]:
    return [each.channel_id for each in world.chat.messages if isinstance(each.message, Introduction)]


async def introduce(world: CoreWorld, channel_id: str, *, wait: float | None = None) -> None:
    """Pagehand is invited."""
    await world.service.introduce("T1", channel_id)
    await world.wait(wait)


async def test_each_channel_gets_one_introduction(world: CoreWorld) -> None:
    """Also after a restart, after another invitation, and by the new id of a channel."""
    world.chat.joined |= {"C2", "C3"}
    await introduce(world, "C1")
    await introduce(world, "C2")
    world.restart("two")
    await introduce(world, "C1", wait=0)
    await world.service.follow_channel("C1", "C3", 1.0)
    await introduce(world, "C3", wait=0)
    assert introduced_in(world) == ["C1", "C2"]
    assert all(each.thread_ts is None for each in world.chat.messages)


@pytest.mark.parametrize("reason", ["is_archived", "restricted_action", "not_in_channel"])
async def test_a_refused_introduction_is_posted_at_the_next_invitation(world: CoreWorld, reason: str) -> None:
    world.chat.fail(ChatNotInChannel(reason) if reason == "not_in_channel" else ChatRejected(reason))
    await introduce(world, "C1", wait=60)
    assert introduced_in(world) == []
    world.chat.recover()
    await world.pass_time(60)
    assert introduced_in(world) == []
    for _ in range(2):
        await introduce(world, "C1", wait=0)
        assert introduced_in(world) == ["C1"]


async def test_a_refused_introduction_that_had_arrived_before_is_not_repeated(world: CoreWorld) -> None:
    world.chat.fail(find=ChatRejected("is_archived"))
    world.chat.lose(post=ChatUncertain("no answer in time"))
    await introduce(world, "C1", wait=60)
    world.chat.recover()
    await introduce(world, "C1", wait=60)
    assert introduced_in(world) == ["C1"]


@pytest.mark.parametrize("why", ["not on the list", "shared"])
async def test_no_introduction_where_nobody_may_use_pagehand(world: CoreWorld, why: str) -> None:
    """People who try are told why. Once they may, the next invitation counts."""
    if why == "shared":
        world.reading.channels["C1"] = ChannelInfo("C1", "partners", is_shared_outside=True, is_private=False)
    else:
        world.rules = replace(world.rules, channels=frozenset({"C2"}))
    world.restart("two")
    await introduce(world, "C1", wait=0)
    assert (world.chat.messages, world.chat.private) == ([], [])
    await world.start(wait=0)
    assert world.chat.private_kinds() == [("UANA", "request_refused")]
    world.rules = replace(world.rules, channels=frozenset(), allow_shared_channels=True)
    world.restart("three")
    await introduce(world, "C1", wait=0)
    assert introduced_in(world) == ["C1"]


@pytest.mark.parametrize(
    ("event", "introduces"),
    [
        ({"user": "U0BOT", "inviter": "UANA", "channel": "C1"}, True),
        ({"user": "U0BOT", "channel": "C1"}, False),
        ({"user": "UBEN", "inviter": "UANA", "channel": "C1"}, False),
        ({"user": "U0BOT", "inviter": "UANA"}, False),
    ],
    ids=["invited", "joined by itself", "somebody else", "no channel"],
)
async def test_only_an_invitation_of_pagehand_introduces_it(event: dict[str, Any], *, introduces: bool) -> None:
    service = RecordingService()
    async with listening_app(service) as app:
        event = {"type": "member_joined_channel"} | event
        answer = await app.handle_payload({"type": "event_callback", "team_id": "T1", "event": event})
    assert answer.status == 200
    assert service.calls == ([("introduce", "T1", "C1")] if introduces else [])
