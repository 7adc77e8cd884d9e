"""The web page's endpoints: what each person may see and do, and which sites may ask."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSServerHandshakeError
from slack_sdk.web.async_client import AsyncWebClient

from bot.workspace import WorkspaceServer
from bot.workspace.page.streams import MAX_QUEUED_FRAMES

ANA, GIA, EMIL = "U0ANA0001", "U0GIA0001", "U0EMIL001"
DOCS = "C0DOCS001"


@pytest.fixture
async def workspace() -> AsyncIterator[WorkspaceServer]:
    server = WorkspaceServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def browser(workspace: WorkspaceServer) -> AsyncIterator[ClientSession]:
    async with ClientSession(workspace.origin, headers={"Origin": workspace.origin}) as session:
        yield session


async def snapshot(browser: ClientSession, user: str) -> dict[str, Any]:
    async with browser.get("/page/snapshot", params={"as": user}) as answer:
        assert answer.status == 200
        body: dict[str, Any] = await answer.json()
        return body


async def do(browser: ClientSession, deed: str, **body: Any) -> dict[str, Any]:
    async with browser.post(f"/page/{deed}", json={"as": ANA, "channel": DOCS, **body}) as answer:
        assert answer.status == 200
        outcome: dict[str, Any] = await answer.json()
        return outcome


async def test_a_snapshot_has_only_what_the_person_may_see(workspace: WorkspaceServer, browser: ClientSession) -> None:
    await workspace.people["ana"].say("leads", "a secret")
    names = {user: {c["name"] for c in (await snapshot(browser, user))["channels"]} for user in (ANA, GIA, EMIL)}
    assert names == {ANA: {"docs", "general", "leads", "partners", ""}, GIA: {"docs", ""}, EMIL: {"partners"}}
    assert "a secret" not in json.dumps(await snapshot(browser, GIA))
    ana = await snapshot(browser, ANA)
    assert ana["me"]["name"] == "ana"
    assert ana["commands"] == [
        {"command": "/docs", "description": "Hand over a documentation task", "usage_hint": "what to do"}
    ]
    assert [(c["user"], c["is_read_only"]) for c in ana["channels"] if c["is_im"]] == [
        (workspace.app.bot_user_id, False)
    ]


async def test_writing_reacting_editing_and_deleting(workspace: WorkspaceServer, browser: ClientSession) -> None:
    sent = await do(browser, "send", text="a < b")
    assert sent["ok"]
    assert (await do(browser, "react", ts=sent["ts"], name="eyes"))["ok"]
    (message,) = (await snapshot(browser, ANA))["messages"][DOCS]
    assert message["text"] == "a &lt; b"
    assert message["reactions"] == [{"name": "eyes", "users": [ANA]}]
    assert (await do(browser, "react", ts=sent["ts"], name="eyes"))["ok"]
    assert (await do(browser, "edit", ts=sent["ts"], text="new"))["ok"]
    (message,) = (await snapshot(browser, ANA))["messages"][DOCS]
    assert (message["text"], message["reactions"], message["edited"]) == ("new", [], True)
    refused = await do(browser, "delete", ts=sent["ts"], **{"as": GIA})
    assert refused == {"ok": False, "error": "You can delete only your own messages."}
    assert (await do(browser, "delete", ts=sent["ts"]))["ok"]
    assert workspace.channels.messages("docs") == []


async def test_commands_in_the_composer(workspace: WorkspaceServer, browser: ClientSession) -> None:
    assert (await do(browser, "send", text="/nope x"))["error"] == "/nope is not a valid command."
    assert (await do(browser, "send", text="/docs x"))["ok"]
    assert (await snapshot(browser, ANA))["messages"][DOCS][-1]["ephemeral"]
    invited = await do(browser, "send", text="/invite @pagehand", channel="C0GENERAL")
    assert invited["ok"]
    assert workspace.app.bot_user_id in workspace.channels["general"].members


async def test_a_stream_has_only_what_the_person_may_see(workspace: WorkspaceServer, browser: ClientSession) -> None:
    client = AsyncWebClient(token=workspace.credentials.bot_token, base_url=workspace.api_url)
    async with (
        browser.ws_connect("/page/stream", params={"as": ANA}) as ana,
        browser.ws_connect("/page/stream", params={"as": GIA}) as gia,
    ):
        for stream in (ana, gia):
            assert await stream.receive_json() == {"type": "link", "connected": False}
        await workspace.people["ben"].say("leads", "for ana")
        await client.chat_postEphemeral(channel=DOCS, user=ANA, text="only ana")
        root = await workspace.people["ben"].say("docs", "for both")
        reply = await workspace.people["ben"].say("docs", "reply", thread_ts=root.ts)
        await workspace.people["ben"].delete("docs", reply.ts)
        assert [await text_of(ana) for _ in range(3)] == ["for ana", "only ana", "for both"]
        assert await text_of(gia) == "for both"
        assert [await text_of(gia) for _ in range(2)] == ["reply", "for both"]
        assert await gia.receive_json() == {"type": "deleted", "channel": DOCS, "ts": reply.ts}


async def text_of(stream: ClientWebSocketResponse) -> str:
    frame = await stream.receive_json()
    assert frame["type"] == "message"
    return str(frame["message"]["text"])


async def test_a_stream_reports_when_the_app_connects_and_disconnects(
    workspace: WorkspaceServer, browser: ClientSession
) -> None:
    async with browser.ws_connect("/page/stream", params={"as": ANA}) as stream:
        await stream.receive_json()
        async with browser.ws_connect(workspace.socket_mode.open_url()):
            assert await stream.receive_json() == {"type": "link", "connected": True}
        assert await stream.receive_json() == {"type": "link", "connected": False}


async def test_pressing_a_button_without_an_app_is_an_error(workspace: WorkspaceServer, browser: ClientSession) -> None:
    client = AsyncWebClient(token=workspace.credentials.bot_token, base_url=workspace.api_url)
    button = {"type": "button", "action_id": "a", "text": {"type": "plain_text", "text": "B"}}
    blocks: list[dict[str, Any]] = [{"type": "actions", "block_id": "b", "elements": [button]}]
    ts = (await client.chat_postMessage(channel=DOCS, text="x", blocks=blocks))["ts"]
    pressed = await do(browser, "press", ts=ts, block_id="b", action_id="a")
    assert pressed["error"] == "No app is connected, so nothing answered."
    assert (await do(browser, "press", ts=ts, block_id="b", action_id="z"))["ok"] is False


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize(("verb", "path"), [("GET", "/page/snapshot"), ("POST", "/page/send"), ("GET", "/page/stream")])
async def test_foreign_pages_are_refused(
    workspace: WorkspaceServer, headers: dict[str, str], verb: str, path: str
) -> None:
    port = workspace.origin.rpartition(":")[2]
    foreign = {name: value.format(port=port) for name, value in headers.items()}
    body = {"as": ANA, "channel": DOCS, "text": "pressed by another page"}
    async with ClientSession(workspace.origin, headers=foreign) as session:
        async with session.request(verb, path, json=body if verb == "POST" else None) as answer:
            assert answer.status == 403
        with pytest.raises(WSServerHandshakeError, match="403"):
            await session.ws_connect("/page/stream")
    assert workspace.channels.messages("docs") == []


async def test_a_link_on_another_site_opens_the_page(workspace: WorkspaceServer) -> None:
    followed = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}
    async with ClientSession(workspace.origin, headers=followed) as session:
        for path in ("/", f"/archives/{DOCS}/p1700000000000100"):
            async with session.get(path) as answer:
                assert answer.status == 200
        async with session.post("/page/send", json={"as": ANA, "channel": DOCS, "text": "x"}) as answer:
            assert answer.status == 403


async def test_a_form_on_another_page_sends_nothing(workspace: WorkspaceServer, browser: ClientSession) -> None:
    async with browser.post("/page/send", data={"as": ANA, "channel": DOCS, "text": "x"}) as answer:
        assert (await answer.json())["ok"] is False
    assert workspace.channels.messages("docs") == []


async def test_the_page_is_served_under_a_strict_policy(workspace: WorkspaceServer, browser: ClientSession) -> None:
    for path in ("/", "/page/static/app.js", "/page/static/styles/base.css", f"/archives/{DOCS}/p1700000000000100"):
        async with browser.get(path) as answer:
            assert answer.status == 200
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    for path in ("/page/static/none.js", "/page/static/../server.py", "/page/static/%2e%2e%2fserver.py"):
        async with browser.get(path) as answer:
            assert answer.status == 404


async def test_unknown_people_see_nothing(browser: ClientSession) -> None:
    for user in ("U404", "U0PAGEHND"):
        async with browser.get("/page/snapshot", params={"as": user}) as answer:
            assert answer.status == 404


async def test_a_page_that_does_not_read_is_disconnected(workspace: WorkspaceServer, browser: ClientSession) -> None:
    """It reconnects by itself with a new snapshot; meanwhile it must not fill the server's memory."""
    async with browser.ws_connect("/page/stream", params={"as": ANA}) as stream:
        await stream.receive_json()
        for number in range(MAX_QUEUED_FRAMES + 1):
            await workspace.people["ana"].say("docs", f"{number}")
        await workspace.people["ana"].say("docs", "one too many")
        async with asyncio.timeout(10):
            texts = [frame async for frame in stream]
        assert len(texts) < MAX_QUEUED_FRAMES
        assert stream.closed
