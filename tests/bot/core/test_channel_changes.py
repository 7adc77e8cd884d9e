"""A channel whose id Slack changes keeps its jobs: under either id, in any order, and if events come twice."""

from typing import Any

import pytest
from support.worlds.core_world import ANA, CoreWorld
from support.worlds.listening_world import listening_app

from bot.app.edges import channel_aliases, newest_id
from bot.cli.personal_data import _forget_batch
from bot.domain.permissions import PermissionRules
from bot.domain.projects import ChannelSettings, Project, Projects, ReplyMode, with_aliases
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Action, MessageVersion, Person, Reply, RequestKind, WayIn

pytestmark = pytest.mark.promise("channel ids")

AT = [f"170000000{number}.000200" for number in range(1, 9)]


async def changed(world: CoreWorld, old: str, new: str, at: float = 1.0) -> None:
    await world.service.follow_channel(old, new, at)


async def test_replies_and_clicks_under_the_new_id_reach_the_job(world: CoreWorld) -> None:
    ts = await world.started()
    await changed(world, "C1", "C2")
    await changed(world, "C2", "C3", 2.0)
    await world.reply(ts, "by the first", AT[0], channel="C1")
    await world.reply(ts, "by the second", AT[1], channel="C2")
    await world.reply(ts, "by the third", AT[2], channel="C3", wait=10)
    assert world.job_api.messages["job-1"] == ["by the first", "by the second", "by the third"]
    thread = await world.thread(ts)
    by_button = Action(ANA, RequestKind.SHOW_STATUS, "click/1", channel_id="C3", thread_id=thread.id)
    by_reaction = Action(ANA, RequestKind.STOP, "reaction/1", channel_id="C2", card_ts=ts)
    elsewhere = Action(ANA, RequestKind.SHOW_STATUS, "click/2", channel_id="C9", thread_id=thread.id)
    assert [await world.service.act(action) for action in (by_button, by_reaction, elsewhere)] == [True, True, False]


@pytest.mark.first(ids=2)
@pytest.mark.parametrize("ids", [("C1", "C2"), ("C2", "C1"), ("C2", "C2")])
async def test_redeliveries_under_both_ids_count_once(world: CoreWorld, ids: tuple[str, str]) -> None:
    """Under the old id or the new one."""
    ts = await world.started()
    await changed(world, "C1", "C2")
    for channel in ids:
        await world.reply(ts, "once", AT[0], channel=channel)
        await changed(world, "C1", "C2")
        await world.ask(mention(channel, AT[1]))
    await world.pass_time(10)
    assert world.job_api.messages["job-1"] == ["once"]
    assert world.job_api.created == ["Do it", "Another"]


def mention(channel: str, ts: str) -> NewJob:
    key = f"message/{channel}/{ts}"
    return NewJob(ANA, channel, "Another", key, WayIn.MENTION, thread_ts=ts, message_ts=ts)


async def test_messages_from_before_the_change_are_found_after_it(world: CoreWorld) -> None:
    """Messages with the new id come first, so their jobs are recorded under it."""
    ts = await world.started()
    await world.ask(mention("C2", AT[0]))
    await world.reply(AT[0], "and that", AT[1], channel="C2", wait=10)
    await changed(world, "C1", "C2")
    await world.ask(mention("C2", AT[0]))
    await world.reply(AT[0], "and that", AT[1], channel="C2")
    await world.reply(AT[0], "at last", AT[2], channel="C2")
    await world.reply(ts, "for the first", AT[3], channel="C2", wait=10)
    assert world.job_api.created == ["Do it", "Another"]
    assert world.job_api.messages == {"job-1": ["for the first"], "job-2": ["and that", "at last"]}


async def test_edits_and_deletions_under_the_new_id_match_the_message(world: CoreWorld) -> None:
    ts = await world.started()
    await world.receive(Reply(ANA, "C1", ts, AT[0], "first words"))
    await world.receive(Reply(ANA, "C1", ts, AT[1], "not any more"))
    await changed(world, "C1", "C2")
    await world.revise(Reply(ANA, "C2", ts, AT[0], "last words", edited_at=AT[2]))
    await world.revise(Reply(ANA, "C2", "", AT[1], "", edited_at=AT[3], withdrawn=True), wait=10)
    assert world.job_api.messages["job-1"] == ["last words"]


async def test_a_job_started_under_the_new_id_has_the_channels_settings(world: CoreWorld) -> None:
    """A new id in the settings counts as the first one; an old id is logged."""
    await changed(world, "C1", "C2")
    known = await channel_aliases(world.store, {"C2", "C9"})
    assert known == {"C2": "C1"}
    for channel in ("C1", "C2"):
        mentions = ChannelSettings(ReplyMode.MENTIONS)
        api, other = Project("api", frozenset({channel})), Project("other")
        world.projects = Projects((other, api), {channel: mentions}).with_channel_aliases(known)
        world.rules = PermissionRules("T1", channels=with_aliases(frozenset({channel}), known))
        world.assemble()
        await world.start(f"for {channel}", channel="C2", key=channel, wait=0)
    assert world.job_api.projects == ["api", "api"]
    assert world.projects.replies("C1") is ReplyMode.MENTIONS
    assert await newest_id(world.store, "C1") == "C2"


async def test_an_outdated_id_in_the_settings_is_named(world: CoreWorld, caplog: pytest.LogCaptureFixture) -> None:
    await changed(world, "C1", "C2")
    await channel_aliases(world.store, {"C1"})
    assert "The id of channel C1 is now C2: please update the settings." in caplog.text


@pytest.mark.parametrize("channel", ["C1", "C2", "C3"])
async def test_a_channel_is_forgotten_under_any_of_its_ids(world: CoreWorld, channel: str) -> None:
    ts = await world.started()
    await world.ask(mention("C2", AT[0]))
    await changed(world, "C1", "C2")
    await changed(world, "C2", "C3", 2.0)
    while await world.store.transact(lambda tx: _forget_batch(tx, "", channel)):
        pass
    assert await world.store.transact(lambda tx: tx.threads.find_newest("C1", ts)) is None
    assert await world.store.transact(lambda tx: tx.threads.find_newest("C2", AT[0])) is None


@pytest.mark.parametrize(
    ("event", "follows"),
    [
        ({"old_channel_id": "C1", "new_channel_id": "C2", "event_ts": "1612206778.000000"}, True),
        ({"old_channel_id": "C1", "new_channel_id": "C1", "event_ts": "1612206778.000000"}, False),
        ({"old_channel_id": "C1", "event_ts": "1612206778.000000"}, False),
        ({"old_channel_id": ["C1"], "new_channel_id": "C2", "event_ts": "1612206778.000000"}, False),
        ({"old_channel_id": "C1", "new_channel_id": "C2", "event_ts": "soon"}, False),
        ({}, False),
    ],
)
async def test_the_event_is_handled_as_documented(world: CoreWorld, event: dict[str, Any], *, follows: bool) -> None:
    async with listening_app(world.service) as app:
        payload = {"type": "event_callback", "team_id": "T1", "event": {"type": "channel_id_changed"} | event}
        assert (await app.handle_payload(payload)).status == 200
    assert await newest_id(world.store, "C1") == ("C2" if follows else "C1")


async def test_permissions_are_checked_under_the_new_id(world: CoreWorld) -> None:
    """The channel still counts as the allowed one."""
    world.configure(rules=PermissionRules("T1", channels=frozenset({"C1"})))
    ts = await world.started()
    await changed(world, "C1", "C2")
    await world.reply(ts, "more", AT[0], Person("UBEN", "T1"), channel="C2", wait=10)
    assert world.job_api.messages["job-1"] == ["more"]


async def test_a_message_deleted_before_the_change_starts_nothing_after_it(world: CoreWorld) -> None:
    """Slack delivers the message itself late."""
    deleted = Reply(ANA, "C2", "", AT[0], "", edited_at=AT[1], withdrawn=True, mentions_us=True)
    await world.revise(deleted)
    await changed(world, "C1", "C2")
    await world.ask(mention("C2", AT[0]), wait=10)
    assert world.job_api.created == []


@pytest.mark.parametrize("told_before", [False, True])
async def test_a_private_answer_is_given_once_across_both_ids(world: CoreWorld, *, told_before: bool) -> None:
    if told_before:
        await changed(world, "C1", "C2")
    assert await world.service.is_first_answer(MessageVersion("C1", AT[0], "UANA", ""))
    await changed(world, "C1", "C2")
    for channel in ("C2", "C1"):
        assert not await world.service.is_first_answer(MessageVersion(channel, AT[0], "UANA", ""))
