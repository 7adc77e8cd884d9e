"""Reading from Slack before a request is sent: people, channels, threads, files and the current words of messages."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import web
from support.servers.file_server import FileServer, file_server
from support.worlds.slack_world import SlackWorld, slack_world

from bot.domain.messages import DIRECT_MESSAGE, PRIVATE_CHANNEL, USER_GROUP, FileContent, SlackFile, mention
from bot.domain.people import Account, ChannelInfo, Member
from bot.domain.requests.request import Reply, RequestKind
from bot.domain.threads.thread import Thread
from bot.errors import ChatMissingScope, ChatNotInChannel, ChatRateLimited, ChatRejected, ChatUncertain
from bot.notices.answers import PromptRequested
from bot.notices.notice import Delivery, Notice, NoticeContent
from bot.notices.requests import (
    RequestSummary,
    RequestUncertain,
)
from bot.slack.message_parts.contents import files_of, read_file
from bot.slack.message_parts.slack_message import MessageFile, SlackMessage
from bot.slack.receiving.history import SlackCurrentMessages
from bot.slack.sending.conversations import DescribedChannel, SlackChannels, SlackConversations, read_channel
from bot.slack.sending.files import SlackFiles
from bot.slack.sending.identity import Identity
from bot.slack.sending.people import SlackGroups, SlackPeople
from bot.slack.sending.user_directory import DescribedUser, SlackMembers, UserDirectory, read_user
from bot.slack.sending.web_api import SlackClient, new_session
from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Upload


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


async def test_a_person_is_read_from_slack(world: SlackWorld) -> None:
    """A member, a guest, a person of another organization, and a bot."""
    members, ours = members_of(world), world.identity.team_id
    ana, gia = await members.member(world.id("ana")), await members.member(world.id("gia"))
    assert ana == Member(world.id("ana"), "ana", ours, is_guest=False)
    assert (gia.is_guest, gia.team_id) == (True, ours)
    assert (await members.member(world.id("emil"))).team_id not in {"", ours}
    assert (await members.member(world.identity.bot_user_id)).account is Account.BOT


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
    assert members.known_member(ben) is not None
    world.now[0] = 301.0
    assert members.known_member(ben) is None
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
    assert found == Member("U1", "", "", is_guest=True)


def test_the_organization_of_a_person_and_the_end_of_an_account_are_read() -> None:
    found = read_user("U1", DescribedUser.read({"deleted": True, "enterprise_user": {"enterprise_id": "E1"}}))
    assert (found.deleted, found.enterprise_id) == (True, "E1")


@pytest.mark.parametrize("mark", ["is_bot", "is_workflow_bot"])
def test_a_workflow_is_a_bot_whether_or_not_slack_calls_it_one(mark: str) -> None:
    assert read_user("U1", DescribedUser.read({mark: True})).account is Account.BOT


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
        client = SlackClient("x", session, base_url=f"{slack.address}/api/")
        people = SlackPeople(client, patience=0.5)
        read = SlackConversations(client, Identity("T1", "Acme", "U0BOT", "B0BOT"), people)
        told = await read.thread("C1", "1700000000.000100")
        assert [(one.author, one.text) for one in told] == [("U1", "Hello @U2")]
        assert len([path for path, _ in slack.asked if path.endswith("replies")]) == 25


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


TOKEN = "xoxb" + "-planted"
PAGE = b"<!DOCTYPE html><title>Sign in</title>"


@dataclass
class FileWorld:
    """A server instead of Slack, another one, and the reader of files."""

    slack: FileServer
    elsewhere: FileServer
    files: SlackFiles


@pytest.fixture
async def files_world() -> AsyncIterator[FileWorld]:
    async with file_server() as slack, file_server() as elsewhere, new_session() as session:
        client = SlackClient(TOKEN, session, base_url=f"{slack.address}/api/")
        yield FileWorld(slack, elsewhere, SlackFiles(client, session, seconds=5.0))


def file_at(url: str, **changes: object) -> SlackFile:
    return replace(SlackFile("F1", "guide.md", "text/markdown", url=url), **changes)  # type: ignore[arg-type]


def files_in(world: SlackWorld) -> SlackFiles:
    return SlackFiles(world.client, world.session)


async def uploaded(world: SlackWorld, *files: Upload) -> tuple[SlackFile, ...]:
    """The files of a message as its event carries them."""
    message = await world.workspace.people["ana"].say("docs", "see", files=list(files))
    answer = await world.client.conversations_history(channel=message.channel, limit=1)
    return files_of(SlackMessage.read(answer["messages"][0]))


async def test_a_file_in_the_workspace_is_read(world: SlackWorld) -> None:
    """Its name and content are read; a page is read like any file, and is not a sign-in page."""
    uploads = (
        Upload("guide.md", "# Größe\n".encode()),
        Upload("a.png", b"\x89PNG"),
        Upload("a.html", b"<h1>Guide</h1>"),
    )
    guide, picture, page = found = await uploaded(world, *uploads)
    assert (guide.name, guide.mimetype, guide.may_be_text) == ("guide.md", "text/markdown", True)
    assert (picture.mimetype, picture.may_be_text, page.mimetype) == ("image/png", False, "text/html")
    contents = [await files_in(world).read(file, max_bytes=1_000) for file in found]
    assert contents == [FileContent(made.content, file.mimetype) for made, file in zip(uploads, found, strict=True)]


async def test_a_file_without_details_is_looked_up(world: SlackWorld) -> None:
    """In shared channels, events contain only its id."""
    (guide,) = await uploaded(world, Upload("guide.md", b"# Guide"))
    files = files_in(world)
    reference = read_file(MessageFile.read({"id": guide.id, "mode": "file_access", "file_access": "check_file_info"}))
    assert (reference.must_look_up, reference.elsewhere, reference.url) == (True, False, "")
    assert await files.look_up(reference) == guide
    assert await files.look_up(guide) is guide
    content = await files.read(guide, max_bytes=100)
    assert (content.data, content.mimetype) == (b"# Guide", "text/markdown")
    for unknown in (SlackFile("F0NOTHERE", ""), SlackFile("", "")):
        with pytest.raises(ChatRejected):
            await files.look_up(unknown)
        with pytest.raises(ChatRejected):
            await files.read(unknown, max_bytes=100)


async def test_a_missing_file_scope_is_named() -> None:
    """Slack returns a sign-in page instead of the file."""
    async with slack_world(AppConfig(scopes=AppConfig().scopes - {"files:read"})) as world:
        (guide,) = await uploaded(world, Upload("index.html", b"<h1>Guide</h1>"))
        with pytest.raises(ChatMissingScope) as raised:
            await files_in(world).read(guide, max_bytes=100)
        assert raised.value.scopes == ("files:read",)


@pytest.mark.parametrize("mimetype", ["text/markdown", "text/html", ""])
async def test_a_sign_in_page_is_not_a_file(files_world: FileWorld, mimetype: str) -> None:
    """Even if the file itself is an HTML page."""
    url = files_world.slack.gives("/files/guide", PAGE, Content_Type="text/html; charset=utf-8")
    with pytest.raises(ChatMissingScope):
        await files_world.files.read(file_at(url, mimetype=mimetype, size=5), max_bytes=1_000)


async def test_a_long_file_is_read_up_to_the_limit(files_world: FileWorld) -> None:
    """Including one that never ends, or that claims to be shorter than it is."""
    given = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal given
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        while True:
            await answer.write(b"x" * 10_000)
            given += 10_000

    files_world.slack.answers["/files/endless"] = endless
    content = await files_world.files.read(
        file_at(f"{files_world.slack.address}/files/endless", size=3), max_bytes=65_536
    )
    assert (len(content.data), content.complete) == (65_536, False)
    exact = files_world.slack.gives("/files/exact", b"y" * 10, Content_Type="text/plain")
    assert await files_world.files.read(file_at(exact), max_bytes=10) == FileContent(b"y" * 10, "text/markdown")


async def test_the_token_is_sent_only_to_slack(files_world: FileWorld) -> None:
    """Neither to an address in an event, nor to the target of a redirect."""
    elsewhere = files_world.elsewhere.gives("/stolen", b"words")
    port = files_world.slack.address.rpartition(":")[2]
    for url in (
        elsewhere,
        "http://files.slack.com/f",
        "https://files.slack.com:8443/f",
        "https://slack.com.evil.example/f",
        "https://evilslack.com/f",
        "https://files.slack.com@127.0.0.1/f",
        f"http://localhost:{port}/f",
        f"https://127.0.0.1:{port}/f",
        "file:///etc/passwd",
        "https://[::1",
        "",
    ):
        with pytest.raises(ChatRejected):
            await files_world.files.read(file_at(url, id=""), max_bytes=100)
    for status in (301, 302, 303, 307, 308):
        url = files_world.slack.gives("/files/moved", status=status, Location=elsewhere)
        with pytest.raises(ChatRejected, match="file_not_at_slack"):
            await files_world.files.read(file_at(url), max_bytes=100)
    assert files_world.elsewhere.asked == []


async def test_redirects_within_slack_are_followed_a_few_times(files_world: FileWorld) -> None:
    """An endless chain is given up."""
    files_world.slack.gives("/files/there", b"words", Content_Type="text/plain")
    url = files_world.slack.gives("/files/here", status=302, Location="there")
    assert (await files_world.files.read(file_at(url), max_bytes=100)).data == b"words"
    assert files_world.slack.asked[-1] == ("/files/there", f"Bearer {TOKEN}")
    for location in ("/files/round", ""):
        url = files_world.slack.gives("/files/round", status=302, Location=location)
        with pytest.raises(ChatRejected, match="too_many_redirects"):
            await files_world.files.read(file_at(url), max_bytes=100)
    assert len(files_world.slack.asked) == 10


async def test_other_answers_of_slack_become_our_errors(files_world: FileWorld) -> None:
    """Each has its remedy, and no error contains the token."""
    cases = ((404, ChatRejected), (403, ChatRejected), (410, ChatRejected), (500, ChatUncertain), (503, ChatUncertain))
    for status, kind in cases:
        with pytest.raises(kind) as raised:
            await files_world.files.read(file_at(files_world.slack.gives("/f", status=status)), max_bytes=100)
        assert TOKEN not in repr(raised.value)
    with pytest.raises(ChatRateLimited) as busy:
        await files_world.files.read(file_at(files_world.slack.gives("/f", status=429, Retry_After="7")), max_bytes=100)
    assert busy.value.retry_after == 7.0


async def test_a_slow_file_download_is_given_up(files_world: FileWorld) -> None:
    """So is one whose connection breaks."""
    gone = asyncio.Event()

    async def slow(_: web.Request) -> web.StreamResponse:
        await gone.wait()
        raise web.HTTPNotFound

    async def cut(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "100"})
        await answer.prepare(request)
        await answer.write(b"x")
        assert request.transport is not None
        request.transport.close()
        return answer

    files_world.slack.answers |= {"/slow": slow, "/cut": cut}
    impatient = SlackFiles(files_world.files._client, files_world.files._session, seconds=0.1)
    with pytest.raises(ChatUncertain):
        await impatient.read(file_at(f"{files_world.slack.address}/slow"), max_bytes=100)
    gone.set()
    with pytest.raises(ChatUncertain):
        await files_world.files.read(file_at(f"{files_world.slack.address}/cut"), max_bytes=100)


async def versions(
    world: SlackWorld, thread_ts: str, since_ts: str, channel: str = "docs"
) -> Mapping[str, Reply | None]:
    reader = SlackCurrentMessages(world.client, world.identity, SlackChannels(world.client))
    return await reader.versions(world.workspace.people["ana"].channel(channel).id, thread_ts, since_ts=since_ts)


async def newest(world: SlackWorld, thread_ts: str, ts: str) -> Reply:
    """The version of a message that was edited."""
    found = (await versions(world, thread_ts, ts))[ts]
    assert found is not None
    return found


async def test_a_thread_shows_what_became_of_its_messages(world: SlackWorld) -> None:
    ana = world.workspace.people["ana"]
    root = await ana.say("docs", "Fix the guide")
    same, edited, gone = [await ana.say("docs", words, thread_ts=root.ts) for words in ("same", "before", "gone")]
    after = await ana.edit("docs", edited.ts, "after")
    await ana.delete("docs", gone.ts)
    found = await versions(world, root.ts, same.ts)
    assert found.keys() >= {same.ts, edited.ts}
    assert gone.ts not in found
    assert found[same.ts] is None
    now = await newest(world, root.ts, edited.ts)
    assert (now.text, now.edited_at, now.person.id) == ("after", after.edited_ts, ana.id)
    assert (now.thread_ts, now.withdrawn, now.mentions_us) == (root.ts, False, False)


@pytest.mark.parametrize("answered", [False, True])
async def test_a_deleted_first_message_is_missing(world: SlackWorld, *, answered: bool) -> None:
    """Slack answers that there is no such thread or, if there are replies, shows a tombstone."""
    ana = world.workspace.people["ana"]
    root = await ana.say("docs", "Fix the guide")
    if answered:
        await ana.say("docs", "Really", thread_ts=root.ts)
    await ana.delete("docs", root.ts)
    assert root.ts not in await versions(world, root.ts, root.ts)


async def test_lines_outside_threads_are_read_from_the_first_one_on(world: SlackWorld) -> None:
    ana = world.workspace.people["ana"]
    earlier, line = [await ana.say("docs", words) for words in ("earlier", "line")]
    await ana.edit("docs", line.ts, "line two")
    assert earlier.ts not in await versions(world, "", line.ts)
    assert (await newest(world, "", line.ts)).edited_at


async def test_a_channel_that_slack_does_not_show_is_no_deletion(world: SlackWorld) -> None:
    ana = world.workspace.people["ana"]
    root = await ana.say("general", "Fix the guide")
    with pytest.raises(ChatNotInChannel):
        await versions(world, root.ts, root.ts, channel="general")


# -- names: looked up once, without long waits, and shown without mentioning anybody -----------------------------------


async def test_an_account_is_known_once_it_was_looked_up(world: SlackWorld) -> None:
    """Also one that does not exist, for a while; a person's or a bot's stays one."""
    directory = UserDirectory(world.client, monotonic=lambda: world.now[0])
    members = SlackMembers(directory, world.identity)
    ids = [world.id("ana"), world.identity.bot_user_id, "U0NOBODY"]
    assert [members.known_account(user_id) for user_id in ids] == [None] * 3
    await asyncio.gather(*map(directory.look_up, ids))
    accounts = [Account.PERSON, Account.BOT]
    assert [members.known_account(user_id) for user_id in ids] == [*accounts, Account.BOT]
    world.now[0] = 86_400.0
    assert [members.known_account(user_id) for user_id in ids] == [*accounts, None]


async def test_texts_are_shown_without_names_while_slack_is_away_or_busy(world: SlackWorld) -> None:
    world.workspace.faults.server_error(method="users.info")
    assert await world.people.names([world.id("ana")]) == {}
    assert await world.people.names([world.id("ben")]) == {}
    assert world.lookups == 1
    world.now[0] = 31.0
    world.workspace.faults.rate_limit(100, method="users.info")
    assert await world.people.names([world.id("ana")]) == {}
    world.now[0] = 130.0
    assert await world.people.names([world.id("ana")]) == {}
    assert world.lookups == 2
    world.now[0] = 132.0
    assert await world.people.names([world.id("ana")]) == {world.id("ana"): "ana"}


async def test_a_slow_lookup_is_not_awaited(world: SlackWorld) -> None:
    ana, ben = world.id("ana"), world.id("ben")
    directory = UserDirectory(world.client)
    assert await SlackPeople(world.client, directory=directory).names([ana]) == {ana: "ana"}
    impatient = SlackPeople(world.client, directory=directory, patience=0.05)
    world.workspace.faults.delay(60.0, method="users.info", count=None)
    for _ in range(2):
        assert await impatient.names([ana, ben]) == {ana: "ana"}
    assert world.lookups == 2
    world.workspace.faults.clear()


async def test_lookups_for_one_text_are_bounded(world: SlackWorld) -> None:
    await world.people.names([f"U{number}" for number in range(1_000)])
    assert world.lookups == 20


async def test_channels_and_groups_are_named_but_private_channels_are_not(world: SlackWorld) -> None:
    """Whether or not Pagehand is a member; unknown channels get the same words. Nothing is looked up twice."""
    known, client = world.workspace.channels, world.client
    await world.workspace.people["ana"].invite("leads", "pagehand")
    general, leads = known["general"].id, known["leads"].id
    direct, ana = known["ana"].id, world.id("ana")
    ids = [general, leads, "C0NOWHERE", direct, "S0WRITERS", "S0NONE", ana]
    told = {
        general: "general",
        leads: PRIVATE_CHANNEL,
        "C0NOWHERE": PRIVATE_CHANNEL,
        direct: DIRECT_MESSAGE,
        "S0WRITERS": "writers",
        "S0NONE": USER_GROUP,
        ana: "ana",
    }
    for _ in range(3):
        assert await world.people.names(ids) == told
    asked = [call.method for call in world.workspace.web_api.calls]
    assert (asked.count("conversations.info"), asked.count("usergroups.list")) == (3, 1)
    assert (await client.conversations_info(channel=leads))["channel"]["name"] == "leads"


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ({"name": "old", "real_name": "B", "profile": {"display_name": "A", "real_name": "B"}}, "A"),
        ({"name": "old", "real_name": "C", "profile": {"display_name": " ", "real_name": "B"}}, "B"),
        ({"name": "old", "real_name": "C", "profile": {}}, "C"),
        ({"name": "old", "profile": None}, ""),
        ({"profile": {"display_name": "A\nB\x02\x03  C" + "x" * 200}}, "A B C" + "x" * 75),
        (None, ""),
    ],
)
def test_the_display_name_is_preferred(user: Any, name: str) -> None:
    assert DescribedUser.read(user).shown_name == name


@pytest.mark.parametrize(
    "says",
    [lambda ana, text: RequestUncertain(_follow_up(ana, text)), PromptRequested],
    ids=lambda says: says("U1", "").kind,
)
async def test_each_message_shows_names_in_quotations(
    world: SlackWorld, says: Callable[[str, str], NoticeContent]
) -> None:
    ana, ben = world.id("ana"), world.id("ben")
    notice = Notice(1, "th1/n", "th1", says(ana, f"Ask {mention(ben)}"), 0.0)
    channel = world.workspace.channels["docs"].id
    thread = Thread("th1", "T1", channel, ana, "Do it", "p", 0.0)
    if notice.delivery is Delivery.POST:
        ts = await world.chat.post_card(thread, "th1/card")
        posted = await world.chat.post(replace(thread, ts=ts, card_ts=ts), notice)
        (shown,) = [message for message in world.workspace.channels.messages("docs") if message.ts == posted]
    else:
        await world.chat.tell(thread, notice)
        (shown,) = world.workspace.people["ana"].ephemerals("docs")
    assert "Ask @ben" in shown.text
    assert ben not in shown.text + str(shown.blocks)


def _follow_up(person_id: str, text: str) -> RequestSummary:
    return RequestSummary("r1", person_id, RequestKind.FOLLOW_UP, text)
