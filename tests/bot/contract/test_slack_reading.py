"""Reading from Slack before a request is sent: people, channels and threads."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from support.servers.file_server import file_server
from support.worlds.slack_world import SlackWorld, slack_world

from bot.domain.people.members import ChannelInfo, Member
from bot.errors import ChatMissingScope, ChatNotInChannel, ChatRejected, ChatUncertain
from bot.slack.sending.conversations import DescribedChannel, SlackChannels, SlackConversations, read_channel
from bot.slack.sending.identity import Identity
from bot.slack.sending.people import SlackGroups, SlackPeople
from bot.slack.sending.user_directory import DescribedUser, SlackMembers, UserDirectory, read_user
from bot.slack.sending.web_api import new_client, new_session
from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.files import Upload


@pytest.fixture
async def world() -> AsyncIterator[SlackWorld]:
    async with slack_world(names_within=2.0) as made:
        yield made


def directory_of(world: SlackWorld) -> UserDirectory:
    return UserDirectory(world.client, monotonic=lambda: world.now[0])


def members_of(world: SlackWorld) -> SlackMembers:
    return SlackMembers(directory_of(world), world.identity)


def calls(world: SlackWorld, method: str) -> int:
    return len([call for call in world.workspace.web_api.calls if call.method == method])


# -- members --------------------------------------------------------------------------------------------------------


async def test_a_person_is_read_from_slack(world: SlackWorld) -> None:
    """A member and administrator, a guest, a person of another organization, and a bot."""
    members, ours = members_of(world), world.identity.team_id
    ana, gia = await members.member(world.id("ana")), await members.member(world.id("gia"))
    assert ana == Member(world.id("ana"), "ana", ours, is_guest=False, is_admin=True, tz="Europe/Lisbon")
    assert (gia.is_guest, gia.team_id, gia.is_admin) == (True, ours, False)
    assert (await members.member(world.id("emil"))).team_id not in {"", ours}
    assert (await members.member(world.identity.bot_user_id)).is_bot


async def test_permissions_are_looked_up_again_after_five_minutes(world: SlackWorld) -> None:
    """So that people who become guests lose their rights."""
    members, ben = members_of(world), world.id("ben")
    for _ in range(3):
        await members.member(ben)
    assert world.lookups == 1
    state = world.workspace.state
    state.users[ben] = replace(state.users[ben], is_ultra_restricted=True)
    world.now[0] = 299.0
    assert not (await members.member(ben)).is_guest
    world.now[0] = 301.0
    assert (await members.member(ben)).is_guest


async def test_an_unknown_id_is_refused_and_an_outage_is_not(world: SlackWorld) -> None:
    """Each becomes the error with its remedy, and an outage is not cached."""
    members = members_of(world)
    for _ in range(2):
        with pytest.raises(ChatRejected, match="user_not_found"):
            await members.member("U0NOBODY")
    assert world.lookups == 1
    world.workspace.faults.server_error(method="users.info")
    with pytest.raises(ChatUncertain):
        await members.member(world.id("ana"))
    assert (await members.member(world.id("ana"))).name == "ana"


async def test_without_the_scope_looking_up_a_member_names_it() -> None:
    """The scope is named."""
    async with slack_world(AppConfig(scopes=AppConfig().scopes - {"users:read"})) as world:
        with pytest.raises(ChatMissingScope):
            await members_of(world).member(world.id("ana"))


@pytest.mark.parametrize(
    "user",
    [
        {},
        {"is_restricted": False},
        {"is_restricted": False, "is_ultra_restricted": None},
        {"is_restricted": "false", "is_ultra_restricted": False},
        {"is_restricted": True, "is_ultra_restricted": False},
        {"is_restricted": False, "is_ultra_restricted": True},
    ],
)
def test_a_person_not_marked_as_full_member_counts_as_a_guest(user: dict[str, Any]) -> None:
    """They belong to no workspace, and have no right, that Slack does not name."""
    found = read_user("U1", DescribedUser.read(user))
    assert found.member == Member("U1", "U1", "", is_guest=True)


@pytest.mark.parametrize("answer", [{"ok": True}, {"ok": True, "user": []}, {"ok": True, "user": "U1"}])
async def test_an_answer_without_a_person_is_unknown(answer: dict[str, Any]) -> None:
    """Slack never sends it."""
    async with file_server() as slack, new_session() as session:
        slack.gives("/api/users.info", _json(answer), Content_Type="application/json")
        client = new_client("x", session, base_url=f"{slack.address}/api/")
        with pytest.raises(ChatRejected):
            await SlackMembers(UserDirectory(client), Identity("T1", "Acme", "U0", "B0")).member("U1")


# -- groups ---------------------------------------------------------------------------------------------------------


async def test_members_of_a_group_are_read(world: SlackWorld) -> None:
    """They are looked up once in five minutes."""
    groups = SlackGroups(world.client, monotonic=lambda: world.now[0])
    writers = {world.id("ana"), world.id("ben")}
    for _ in range(3):
        assert await groups.members_of(["S0WRITERS"]) == writers
    assert calls(world, "usergroups.users.list") == 1
    world.now[0] = 301.0
    assert await groups.members_of({"S0WRITERS"}) == writers
    assert calls(world, "usergroups.users.list") == 2
    assert await groups.members_of([]) == frozenset()


async def test_a_hidden_group_has_no_members(world: SlackWorld, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged once; the other groups count."""
    groups = SlackGroups(world.client, monotonic=lambda: world.now[0])
    for now in (0.0, 400.0):
        world.now[0] = now
        assert world.id("ana") in await groups.members_of(["S0GONE", "S0WRITERS"])
        assert await groups.members_of(["S0GONE"]) == frozenset()
    assert caplog.text.count("S0GONE") == 1


async def test_while_slack_is_away_nobody_counts_as_a_stranger(world: SlackWorld) -> None:
    """The error says that Slack could not be asked."""
    groups = SlackGroups(world.client)
    world.workspace.faults.server_error(method="usergroups.users.list")
    with pytest.raises(ChatUncertain):
        await groups.members_of(["S0WRITERS"])
    assert await groups.members_of(["S0WRITERS"])


# -- channels -------------------------------------------------------------------------------------------------------


async def test_a_channels_kind_is_read(world: SlackWorld) -> None:
    """Public, shared with another organization, and direct, for which nothing is looked up."""
    channels, known = SlackChannels(world.client), world.workspace.channels
    docs, partners = known["docs"].id, known["partners"].id
    for _ in range(2):
        assert await channels.channel(docs) == ChannelInfo(docs, "docs", is_shared_outside=False, is_private=False)
    assert await channels.channel(partners) == ChannelInfo(
        partners, "partners", is_shared_outside=True, is_private=False
    )
    assert calls(world, "conversations.info") == 2
    direct = known["ana"].id
    assert await channels.channel(direct) == ChannelInfo(direct, "", False, is_private=True, is_direct=True)
    assert calls(world, "conversations.info") == 2
    with pytest.raises(ChatRejected):
        await channels.channel(known["leads"].id)


@pytest.mark.parametrize("channel", [None, [], {}, {"is_ext_shared": None, "is_private": 0}, {"is_ext_shared": "no"}])
def test_a_channel_not_known_to_be_internal_counts_as_shared(channel: Any) -> None:
    """It counts as private, too."""
    assert read_channel("C1", DescribedChannel.read(channel)) == ChannelInfo(
        "C1", "", is_shared_outside=True, is_private=True
    )


# -- threads --------------------------------------------------------------------------------------------------------


def conversations_of(world: SlackWorld) -> SlackConversations:
    return SlackConversations(world.client, world.identity, world.people)


async def test_a_thread_is_read_with_names_and_without_the_bot(world: SlackWorld) -> None:
    """Oldest first, with files, forwarded messages and mentioned people."""
    ana, ben = world.workspace.people["ana"], world.workspace.people["ben"]
    docs = world.workspace.channels["docs"].id
    other = await ben.say("docs", "Ports are *wrong* in the guide")
    root = await ana.say("docs", "Who knows about ports, @ben?")
    await ben.say("docs", "Look here", thread_ts=root.ts, files=[Upload("ports.txt", b"80")])
    await world.client.chat_postMessage(channel=docs, thread_ts=root.ts, text="A notice of ours")
    await ana.forward("docs", other.ts, "docs", thread_ts=root.ts)
    told = await conversations_of(world).thread(docs, root.ts)
    assert [(message.author, message.text) for message in told] == [
        ("ana", "Who knows about ports, @ben?"),
        ("ben", "Look here"),
        ("ana", ""),
    ]
    assert [file.name for file in told[1].files] == ["ports.txt"]
    (share,) = told[2].forwarded
    assert (share.author, share.text) == ("ben", "Ports are *wrong* in the guide")
    assert other.ts.replace(".", "") in share.url


async def test_only_messages_since_the_last_reading_are_read(world: SlackWorld) -> None:
    """Without the message that it is counted from, and without the thread's root, which Slack sends again."""
    ana, docs = world.workspace.people["ana"], world.workspace.channels["docs"].id
    root = await ana.say("docs", "first")
    said = [await ana.say("docs", text, thread_ts=root.ts) for text in ("a", "b", "c", "d")]
    told = await conversations_of(world).thread(docs, root.ts, after_ts=said[0].ts, before_ts=said[3].ts)
    assert [message.text for message in told] == ["b", "c"]
    assert await conversations_of(world).thread(docs, root.ts, after_ts=said[3].ts) == ()


async def test_an_unreadable_thread_raises_the_matching_error(world: SlackWorld) -> None:
    """Not a member, no such thread."""
    leads, docs = world.workspace.channels["general"].id, world.workspace.channels["docs"].id
    root = await world.workspace.people["ben"].say("general", "hello")
    with pytest.raises(ChatNotInChannel):
        await conversations_of(world).thread(leads, root.ts)
    with pytest.raises(ChatRejected):
        await conversations_of(world).thread(docs, "1700000000.000001")


async def test_endless_pages_are_given_up_and_non_messages_left_out() -> None:
    """The same for any server instead of Slack."""
    odd = [None, "words", {"ts": 5}, {"ts": "soon", "text": "x"}, {"ts": "1700000000.000100", "text": ["x"]}]
    message = {"ts": "1700000000.000200", "user": "U1", "text": "Hello <@U2>"}
    page = {"ok": True, "messages": [*odd, message], "response_metadata": {"next_cursor": "again"}}
    async with file_server() as slack, new_session() as session:
        slack.gives("/api/conversations.replies", _json(page), Content_Type="application/json")
        client = new_client("x", session, base_url=f"{slack.address}/api/")
        people = SlackPeople(client, patience=0.5)
        read = SlackConversations(client, Identity("T1", "Acme", "U0BOT", "B0BOT"), people)
        told = await read.thread("C1", "1700000000.000100")
        assert [(one.author, one.text) for one in told] == [("U1", "Hello @U2")]
        assert len([path for path, _ in slack.asked if path.endswith("replies")]) == 25


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()
