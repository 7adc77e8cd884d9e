"""Reading files from Slack: their content, and the token for Slack alone."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest
from aiohttp import web
from support.servers.file_server import FileServer, file_server
from support.worlds.slack_world import SlackWorld, slack_world

from bot.domain.context.slack_files import FileContent, FileMode, SlackFile
from bot.errors import ChatMissingScope, ChatRateLimited, ChatRejected, ChatUncertain
from bot.slack.message_parts.attachments import files_of, read_file
from bot.slack.message_parts.slack_message import MessageFile, SlackMessage
from bot.slack.sending.files import SlackFiles
from bot.slack.sending.web_api import new_client, new_session
from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.files import Upload

TOKEN = "xoxb" + "-planted"
PAGE = b"<!DOCTYPE html><title>Sign in</title>"


@dataclass
class FileWorld:
    """A server instead of Slack, another one, and the reader of files."""

    slack: FileServer
    elsewhere: FileServer
    files: SlackFiles


@pytest.fixture
async def world() -> AsyncIterator[FileWorld]:
    async with file_server() as slack, file_server() as elsewhere, new_session() as session:
        client = new_client(TOKEN, session, base_url=f"{slack.address}/api/")
        yield FileWorld(slack, elsewhere, SlackFiles(client, session, seconds=5.0))


@pytest.fixture
async def workspace() -> AsyncIterator[SlackWorld]:
    async with slack_world() as made:
        yield made


def file_at(url: str, **changes: object) -> SlackFile:
    return replace(SlackFile("F1", "guide.md", "text/markdown", url=url), **changes)  # type: ignore[arg-type]


async def uploaded(world: SlackWorld, *files: Upload) -> tuple[SlackFile, ...]:
    """The files of a message as its event carries them."""
    message = await world.workspace.people["ana"].say("docs", "see", files=list(files))
    answer = await world.client.conversations_history(channel=message.channel, limit=1)
    return files_of(SlackMessage.read(answer["messages"][0]))


async def test_a_file_in_the_workspace_is_read(workspace: SlackWorld) -> None:
    """Its name and content are read."""
    guide, picture = await uploaded(workspace, Upload("guide.md", "# Größe\n".encode()), Upload("a.png", b"\x89PNG"))
    files = SlackFiles(workspace.client, workspace.response_urls._session)
    assert (guide.name, guide.mimetype, guide.may_be_text) == ("guide.md", "text/markdown", True)
    assert (picture.mimetype, picture.may_be_text) == ("image/png", False)
    assert await files.read(guide, max_bytes=1_000) == FileContent("# Größe\n".encode(), "text/markdown")
    assert await files.read(picture, max_bytes=1_000) == FileContent(b"\x89PNG", "image/png")


async def test_a_canvas_is_read_like_any_file(workspace: SlackWorld) -> None:
    """It is not a sign-in page."""
    (page,) = await uploaded(workspace, Upload("index.html", b"<h1>Guide</h1>"))
    files = SlackFiles(workspace.client, workspace.response_urls._session)
    assert (await files.read(page, max_bytes=100)).data == b"<h1>Guide</h1>"


async def test_a_file_without_details_is_looked_up(workspace: SlackWorld) -> None:
    """In shared channels, events contain only its id."""
    (guide,) = await uploaded(workspace, Upload("guide.md", b"# Guide"))
    files = SlackFiles(workspace.client, workspace.response_urls._session)
    reference = read_file(MessageFile.read({"id": guide.id, "mode": "file_access", "file_access": "check_file_info"}))
    assert (reference.must_look_up, reference.mode, reference.url) == (True, FileMode.OTHER, "")
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
    async with slack_world(AppConfig(scopes=AppConfig().scopes - {"files:read"})) as workspace:
        (guide,) = await uploaded(workspace, Upload("index.html", b"<h1>Guide</h1>"))
        with pytest.raises(ChatMissingScope) as raised:
            await SlackFiles(workspace.client, workspace.response_urls._session).read(guide, max_bytes=100)
        assert raised.value.scopes == ("files:read",)


@pytest.mark.parametrize("mimetype", ["text/markdown", "text/html", ""])
async def test_a_sign_in_page_is_not_a_file(world: FileWorld, mimetype: str) -> None:
    """Even if the file itself is an HTML page."""
    url = world.slack.gives("/files/guide", PAGE, Content_Type="text/html; charset=utf-8")
    with pytest.raises(ChatMissingScope):
        await world.files.read(file_at(url, mimetype=mimetype, size=5), max_bytes=1_000)


async def test_a_long_file_is_read_up_to_the_limit(world: FileWorld) -> None:
    """Including one that never ends, or that claims to be shorter than it is."""
    given = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal given
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        while True:
            await answer.write(b"x" * 10_000)
            given += 10_000

    world.slack.answers["/files/endless"] = endless
    content = await world.files.read(file_at(f"{world.slack.address}/files/endless", size=3), max_bytes=65_536)
    assert (len(content.data), content.complete) == (65_536, False)
    exact = world.slack.gives("/files/exact", b"y" * 10, Content_Type="text/plain")
    assert await world.files.read(file_at(exact), max_bytes=10) == FileContent(b"y" * 10, "text/markdown")


async def test_the_token_is_sent_only_to_slack(world: FileWorld) -> None:
    """Neither to an address in an event, nor to the target of a redirect."""
    elsewhere = world.elsewhere.gives("/stolen", b"words")
    port = world.slack.address.rpartition(":")[2]
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
            await world.files.read(file_at(url, id=""), max_bytes=100)
    for status in (301, 302, 303, 307, 308):
        url = world.slack.gives("/files/moved", status=status, Location=elsewhere)
        with pytest.raises(ChatRejected, match="file_not_at_slack"):
            await world.files.read(file_at(url), max_bytes=100)
    assert world.elsewhere.asked == []


async def test_redirects_within_slack_are_followed_a_few_times(world: FileWorld) -> None:
    """An endless chain is given up."""
    world.slack.gives("/files/there", b"words", Content_Type="text/plain")
    url = world.slack.gives("/files/here", status=302, Location="there")
    assert (await world.files.read(file_at(url), max_bytes=100)).data == b"words"
    assert world.slack.asked[-1] == ("/files/there", f"Bearer {TOKEN}")
    for location in ("/files/round", ""):
        url = world.slack.gives("/files/round", status=302, Location=location)
        with pytest.raises(ChatRejected, match="too_many_redirects"):
            await world.files.read(file_at(url), max_bytes=100)
    assert len(world.slack.asked) == 10


async def test_other_answers_of_slack_become_our_errors(world: FileWorld) -> None:
    """Each has its remedy, and no error contains the token."""
    cases = ((404, ChatRejected), (403, ChatRejected), (410, ChatRejected), (500, ChatUncertain), (503, ChatUncertain))
    for status, kind in cases:
        with pytest.raises(kind) as raised:
            await world.files.read(file_at(world.slack.gives("/f", status=status)), max_bytes=100)
        assert TOKEN not in repr(raised.value)
    with pytest.raises(ChatRateLimited) as busy:
        await world.files.read(file_at(world.slack.gives("/f", status=429, Retry_After="7")), max_bytes=100)
    assert busy.value.retry_after == 7.0


async def test_a_slow_file_download_is_given_up(world: FileWorld) -> None:
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

    world.slack.answers |= {"/slow": slow, "/cut": cut}
    impatient = SlackFiles(world.files._client, world.files._session, seconds=0.1)
    with pytest.raises(ChatUncertain):
        await impatient.read(file_at(f"{world.slack.address}/slow"), max_bytes=100)
    gone.set()
    with pytest.raises(ChatUncertain):
        await world.files.read(file_at(f"{world.slack.address}/cut"), max_bytes=100)
