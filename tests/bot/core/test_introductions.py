"""Pagehand introduces itself once in a channel that it was invited to, whatever happens to Slack and to itself."""

from dataclasses import replace
from typing import Any

import pytest
from support.fakes.ephemeral import unreachable_ephemeral
from support.fakes.recording_service import RecordingService
from support.worlds.core_world import CoreWorld

from bot.domain.people import ChannelInfo
from bot.domain.threads.thread import Thread
from bot.errors import ChatNotInChannel, ChatRejected, ChatUncertain, ChatUnreachable
from bot.notices.answers import Introduction
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import new_session


def introduced_in(world: CoreWorld) -> list[str]:
    return [each.channel_id for each in world.chat.messages if isinstance(each.message, Introduction)]


async def test_each_channel_gets_one_introduction(world: CoreWorld) -> None:
    """Also after a restart, after another invitation, and by the new id of a channel."""
    world.chat.joined |= {"C2"}
    await world.service.introduce("T1", "C1")
    await world.service.introduce("T1", "C2")
    world.restart("two")
    await world.service.introduce("T1", "C1")
    await world.settle()
    await world.service.follow_channel("C1", "C3", 1.0)
    await world.service.introduce("T1", "C3")
    await world.settle()
    assert introduced_in(world) == ["C1", "C2"]
    assert all(each.thread_ts is None for each in world.chat.messages)


async def test_an_introduction_in_doubt_is_looked_for_and_not_repeated(world: CoreWorld) -> None:
    def lost(call: str, thread: Thread | None) -> None:
        world.chat.after = lambda call, thread: None
        raise ChatUncertain("no answer in time")

    world.chat.after = lost
    await world.service.introduce("T1", "C1")
    await world.pass_time(60)
    assert introduced_in(world) == ["C1"]
    assert world.chat.calls == ["post", "find"]


async def test_no_introduction_where_pagehand_was_removed(world: CoreWorld) -> None:
    """It does not rejoin to post it, and nobody is told."""
    await world.service.introduce("T1", "C2")
    await world.pass_time(60)
    assert (world.chat.messages, world.chat.private, world.chat.calls) == ([], [], ["post"])


@pytest.mark.parametrize("reason", ["is_archived", "restricted_action", "not_in_channel"])
async def test_a_refused_introduction_is_posted_at_the_next_invitation(world: CoreWorld, reason: str) -> None:
    def refuse(call: str, thread: Thread | None) -> None:
        raise ChatNotInChannel(reason) if reason == "not_in_channel" else ChatRejected(reason)

    world.chat.fault = refuse
    await world.service.introduce("T1", "C1")
    await world.pass_time(60)
    assert introduced_in(world) == []
    world.chat.fault = lambda call, thread: None
    await world.pass_time(60)
    assert introduced_in(world) == []
    for _ in range(2):
        await world.service.introduce("T1", "C1")
        await world.settle()
        assert introduced_in(world) == ["C1"]


async def test_a_refused_introduction_that_had_arrived_before_is_not_repeated(world: CoreWorld) -> None:
    def lost(call: str, thread: Thread | None) -> None:
        world.chat.fault = refuse
        raise ChatUncertain("no answer in time")

    def refuse(call: str, thread: Thread | None) -> None:
        raise ChatRejected("is_archived")

    world.chat.after = lost
    await world.service.introduce("T1", "C1")
    await world.pass_time(60)
    world.chat.fault = world.chat.after = lambda call, thread: None
    await world.service.introduce("T1", "C1")
    await world.pass_time(60)
    assert introduced_in(world) == ["C1"]


@pytest.mark.parametrize("why", ["not on the list", "shared"])
async def test_no_introduction_where_nobody_may_use_pagehand(world: CoreWorld, why: str) -> None:
    """People who try are told why. Once they may, the next invitation counts."""
    if why == "shared":
        world.reading.channels["C1"] = ChannelInfo("C1", "partners", is_shared_outside=True, is_private=False)
    else:
        world.rules = replace(world.rules, channels=frozenset({"C2"}))
    world.restart("two")
    await world.service.introduce("T1", "C1")
    await world.settle()
    assert (world.chat.messages, world.chat.private) == ([], [])
    await world.start()
    await world.settle()
    assert world.chat.private_kinds() == [("UANA", "request_refused")]
    world.rules = replace(world.rules, channels=frozenset(), allow_shared_channels=True)
    world.restart("three")
    await world.service.introduce("T1", "C1")
    await world.settle()
    assert introduced_in(world) == ["C1"]


async def test_an_introduction_waits_until_slack_says_what_the_channel_is(world: CoreWorld) -> None:
    world.reading.faults.append(ChatUnreachable("no connection"))
    await world.service.introduce("T1", "C1")
    await world.settle()
    assert introduced_in(world) == []
    await world.pass_time(60)
    assert introduced_in(world) == ["C1"]


async def test_each_workflow_is_answered_once_in_a_channel(world: CoreWorld) -> None:
    for workflow_id in ("UFLOW", "UFLOW", "UOTHER", ""):
        await world.service.introduce("T1", "C1", workflow_id=workflow_id)
        await world.settle()
    posted = [each.message for each in world.chat.messages]
    assert posted == [Introduction(to_workflow=True), Introduction(to_workflow=True), Introduction()]


async def test_an_introduction_belongs_to_no_job_and_starts_none(world: CoreWorld) -> None:
    await world.service.introduce("T1", "C1")
    await world.settle()
    ts = await world.started()
    assert world.chat.said() == ["introduction", "job_started"]
    assert (await world.thread(ts)).requester_id == "UANA"
    assert world.job_api.created == ["Do it"]


@pytest.mark.parametrize(
    ("event", "introduces"),
    [
        ({"user": "UBOT", "inviter": "UANA", "channel": "C1"}, True),
        ({"user": "UBOT", "channel": "C1"}, False),
        ({"user": "UBEN", "inviter": "UANA", "channel": "C1"}, False),
        ({"user": "UBOT", "inviter": "UANA"}, False),
    ],
    ids=["invited", "joined by itself", "somebody else", "no channel"],
)
async def test_only_an_invitation_of_pagehand_introduces_it(event: dict[str, Any], *, introduces: bool) -> None:
    service = RecordingService()
    async with new_session() as session:
        app = SlackApp(
            service,
            identity=Identity(team_id="T1", team="Acme", bot_user_id="UBOT", bot_id="BBOT"),
            message_context=MessageContext(),
            ephemeral_sender=unreachable_ephemeral(session),
        )
        event = {"type": "member_joined_channel"} | event
        answer = await app.handle_payload({"type": "event_callback", "team_id": "T1", "event": event})
    assert answer.status == 200
    assert service.calls == ([("introduce", "T1", "C1")] if introduces else [])
