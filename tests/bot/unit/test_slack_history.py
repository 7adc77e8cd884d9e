"""A message of Slack's history becomes the events that Slack would have sent: the listeners record the same."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.fakes.slack_payloads import deletion, edit, event
from support.worlds.listening_world import BOT, IDENTITY, ListeningWorld, listening

from bot.domain.people.members import ChannelInfo
from bot.domain.requests.request import Arrival, Reply
from bot.errors import NotRecorded, StoreUnavailable
from bot.slack.receiving import history

CHANNEL = ChannelInfo("C1", "docs", is_shared_outside=False, is_private=False)
EDITED_AT = "1700000009.000000"
IN_EVENTS_ONLY = ("channel", "channel_type", "event_ts")


@pytest.fixture
async def world() -> AsyncIterator[ListeningWorld]:
    async with listening() as made:
        yield made


def as_kept(message: dict[str, Any]) -> dict[str, Any]:
    """A message as Slack's history has it."""
    return {key: value for key, value in message.items() if key not in IN_EVENTS_ONLY}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"text": f"<@{BOT}> fix the guides", "thread_ts": None},
        {"subtype": "thread_broadcast"},
        {"subtype": "file_share", "files": [{"id": "F1", "name": "a.txt", "mimetype": "text/plain"}]},
        {"text": "!stop"},
        {"user": "U0EXT", "user_team": "T9", "source_team": "T9"},
        {"subtype": "bot_message", "bot_id": "B9"},
        {"subtype": "channel_join"},
    ],
)
async def test_what_was_written_is_recorded_as_if_it_had_just_arrived(
    world: ListeningWorld, changes: dict[str, Any]
) -> None:
    live = event(**changes)
    await world.take(live)
    recorded, world.service.calls = world.service.calls, []
    await world.app.handle_past(history.written(as_kept(live["event"]), CHANNEL, IDENTITY), Arrival.LIVE)
    assert world.service.calls == recorded


async def test_an_edit_is_recorded_as_of_the_time_that_the_message_names(world: ListeningWorld) -> None:
    live = edit("New words", before=None)
    live["event"]["ts"] = EDITED_AT
    await world.take(live)
    recorded, world.service.calls = world.service.calls, []
    await world.app.handle_past(history.changed(live["event"]["message"], CHANNEL, IDENTITY), Arrival.LIVE)
    assert world.service.calls == recorded != []


async def test_what_was_written_and_edited_is_also_a_message_with_the_new_words(world: ListeningWorld) -> None:
    message = edit("New words")["event"]["message"]
    await world.app.handle_past(history.written(message, CHANNEL, IDENTITY), Arrival.LIVE)
    assert world.service.replies == {("1700000002.000100", "New words")}


async def test_an_unedited_message_has_no_edit(world: ListeningWorld) -> None:
    await world.app.handle_past(history.changed(as_kept(event()["event"]), CHANNEL, IDENTITY), Arrival.LIVE)
    assert world.service.calls == []


async def test_a_deletion_withdraws_whoever_wrote_it(world: ListeningWorld) -> None:
    live = deletion()
    await world.take(live)
    (told,) = world.service.edits
    gone = history.deleted(told.message_ts, CHANNEL, IDENTITY, at=live["event"]["ts"], thread_ts="1700000001.000100")
    world.service.calls = []
    await world.app.handle_past(gone, Arrival.LIVE)
    (found,) = world.service.edits
    assert found.withdrawn
    assert (found.message_ts, found.thread_ts, found.edited_at) == (told.message_ts, told.thread_ts, told.edited_at)


async def test_nobody_without_a_team_counts_as_ours_in_a_shared_channel(world: ListeningWorld) -> None:
    shared = ChannelInfo("C1", "docs", is_shared_outside=True, is_private=False)
    message = as_kept(event(team=None)["event"])
    await world.app.handle_past(history.written(message, shared, IDENTITY), Arrival.LIVE)
    assert [reply.person.team_id for reply in world.service.received] == [""]


@pytest.mark.parametrize("arrival", Arrival)
async def test_everything_that_is_written_says_how_it_arrived(world: ListeningWorld, arrival: Arrival) -> None:
    reply = as_kept(event()["event"])
    mention = as_kept(event(text=f"<@{BOT}> fix the guides", thread_ts=None)["event"])
    edited = edit()["event"]["message"]
    for payload in (
        history.written(reply, CHANNEL, IDENTITY),
        history.written(mention, CHANNEL, IDENTITY),
        history.written({**reply, "text": "!stop"}, CHANNEL, IDENTITY),
        history.changed(edited, CHANNEL, IDENTITY),
    ):
        await world.app.handle_past(payload, arrival)
    assert [call[1].arrival for call in world.service.calls] == [arrival] * 4


async def test_what_arrives_from_slack_itself_is_live(world: ListeningWorld) -> None:
    await world.take(event())
    await world.take(edit())
    assert all(isinstance(call[1], Reply) and call[1].arrival is Arrival.LIVE for call in world.service.calls)


async def test_what_could_not_be_recorded_is_not_counted_as_handled(world: ListeningWorld) -> None:
    world.service.fault = StoreUnavailable("down")
    with pytest.raises(NotRecorded):
        await world.app.handle_past(history.written(as_kept(event()["event"]), CHANNEL, IDENTITY), Arrival.LIVE)
