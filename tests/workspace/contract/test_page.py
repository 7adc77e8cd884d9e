"""The web page's endpoints: what each person may see and do, and which sites may ask."""

import json
from io import BytesIO
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSServerHandshakeError
from support.worlds.modal_samples import input_block, modal
from support.worlds.workspace_world import client_of

from bot.workspace import WorkspaceServer
from bot.workspace.model.entities import MAX_FILE_BYTES
from bot.workspace.server import MAX_BODY_BYTES

ANA, BEN, GIA, EMIL, DOCS = "U0ANA0001", "U0BEN0001", "U0GIA0001", "U0EMIL001", "C0DOCS001"
PROMPT = input_block("b", "Prompt", {"type": "plain_text_input", "action_id": "a"})
MODAL = modal(PROMPT, private_metadata="the app's own")
HOME: dict[str, Any] = {"type": "home", "blocks": [PROMPT]}


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
    assert [command["command"] for command in ana["commands"]] == ["/docs"]
    assert [each["user"] for each in ana["channels"] if each["is_im"]] == [workspace.app.bot_user_id]


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


async def test_a_stream_has_only_what_the_person_may_see(workspace: WorkspaceServer, browser: ClientSession) -> None:
    client = client_of(workspace)
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


async def upload(browser: ClientSession, content: bytes, *, user: str = ANA, name: str = "a.txt") -> dict[str, Any]:
    headers = {"Content-Type": "application/octet-stream"}
    async with browser.post(
        "/page/upload", params={"as": user, "name": name}, data=BytesIO(content), headers=headers
    ) as answer:
        outcome: dict[str, Any] = await answer.json()
        return outcome


async def test_views_are_shown_only_to_their_person_and_without_private_metadata(
    workspace: WorkspaceServer, browser: ClientSession
) -> None:
    """Both in the snapshot and in the stream."""
    client = client_of(workspace)
    async with (
        browser.ws_connect("/page/stream", params={"as": ANA}) as ana,
        browser.ws_connect("/page/stream", params={"as": BEN}) as ben,
    ):
        for stream in (ana, ben):
            await stream.receive_json()
        await client.views_publish(user_id=ANA, view=HOME)
        view = workspace.views.open(ANA, MODAL)
        await workspace.people["ben"].say("general", "for ben as well")
        home, shown = await ana.receive_json(), await ana.receive_json()
        assert (home["type"], home["home"]["view"]["blocks"][0]["block_id"]) == ("home", "b")
        assert (shown["type"], shown["view"]["id"]) == ("modal", view.id)
        assert "the app's own" not in str(shown)
        assert (await ben.receive_json())["type"] == "message"
    seen = await snapshot(browser, ANA)
    assert seen["modal"] == shown["view"]
    assert seen["home"] == home["home"]
    assert (await snapshot(browser, BEN))["home"] == {"view": None}
    assert (await snapshot(browser, EMIL))["home"] is None


async def test_a_view_accepts_only_valid_values(workspace: WorkspaceServer, browser: ClientSession) -> None:
    """Wrong types of values, and other people's views, get an error message."""
    shown = workspace.views.open(ANA, MODAL)
    wrong = await do(browser, "submit", view_id=shown.id, values={"b": {"a": {"value": "x"}}})
    assert wrong["error"] == "That choice is no longer offered."
    empty: list[Any] = [None, [], {"b": 7}, {"other": {"a": "x"}}]
    for values in empty:
        missing = await do(browser, "submit", view_id=shown.id, values=values)
        assert missing["errors"] == {"b": "Please complete this required field."}
    taken = await do(browser, "submit", view_id=shown.id, values={"b": {"a": "typed"}})
    assert taken["error"] == "No app is connected, so nothing answered."
    assert shown.values["b"]["a"]["value"] == "typed"
    assert (await do(browser, "submit", view_id=shown.id, **{"as": BEN}))["error"] == "That is no longer open."
    assert (await do(browser, "close", view_id=shown.id))["ok"]
    assert (await do(browser, "close", view_id=shown.id))["ok"], "closed twice is closed"
    assert (await do(browser, "submit", view_id=shown.id))["error"] == "That is no longer open."


async def test_an_upload_goes_with_one_message_of_its_person(
    workspace: WorkspaceServer, browser: ClientSession
) -> None:
    """Not with somebody else's, not with two, and not if it is too large."""
    file = (await upload(browser, b"hello"))["upload"]
    stolen = await do(browser, "send", text="x", uploads=[file], **{"as": BEN})
    assert stolen["error"] == "That file is no longer there. Attach it again."
    assert (await do(browser, "send", text="", uploads=[file]))["ok"]
    assert (await do(browser, "send", text="again", uploads=[file]))["ok"] is False
    assert (await do(browser, "send", text="odd", uploads="all of them"))["ok"] is False
    assert (await upload(browser, bytes(MAX_FILE_BYTES + 1)))["error"] == "That file is too large."
    assert (await upload(browser, bytes(MAX_BODY_BYTES + 1)))["error"] == "That file is too large."
    async with browser.post("/page/upload", params={"as": ANA, "name": "a"}, data={"a": "form"}) as answer:
        assert (await answer.json())["ok"] is False
    (message,) = workspace.channels.messages("docs")
    assert [file.name for file in message.files or ()] == ["a.txt"]


async def test_shortcuts_are_for_members(workspace: WorkspaceServer, browser: ClientSession) -> None:
    """Others, and unknown shortcuts, get an error message."""
    said = await workspace.people["ana"].say("partners", "Welcome")
    place = {"channel": "C0PARTNER", "ts": said.ts, "callback_id": "hand_to_pagehand"}
    assert (await do(browser, "shortcut", **place))["error"] == "No app is connected, so nothing answered."
    refused = "That shortcut is no longer there, or not for you."
    assert (await do(browser, "shortcut", **place, **{"as": EMIL}))["error"] == refused
    assert (await do(browser, "shortcut", callback_id="no_such"))["error"] == refused
    command = await do(browser, "send", text="/docs x", channel="C0PARTNER", **{"as": EMIL})
    assert command["error"].startswith("Commands are not for people of other organisations")
    assert (await do(browser, "home", tab="home", **{"as": EMIL}))["ok"], "a tab that is not there is not an error"
