"""The web page's endpoints for modals, Home, shortcuts and files."""

from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import pytest
from aiohttp import ClientSession
from slack_sdk.web.async_client import AsyncWebClient

from bot.workspace import WorkspaceServer
from bot.workspace.model.files import MAX_FILE_BYTES
from bot.workspace.page.uploads import MAX_WAITING

ANA, BEN, EMIL, DOCS = "U0ANA0001", "U0BEN0001", "U0EMIL001", "C0DOCS001"
PROMPT: dict[str, Any] = {
    "type": "input",
    "block_id": "b",
    "label": {"type": "plain_text", "text": "Prompt"},
    "element": {"type": "plain_text_input", "action_id": "a"},
}
MODAL: dict[str, Any] = {
    "type": "modal",
    "title": {"type": "plain_text", "text": "T"},
    "submit": {"type": "plain_text", "text": "S"},
    "private_metadata": "the app's own",
    "blocks": [PROMPT],
}
HOME: dict[str, Any] = {"type": "home", "blocks": [PROMPT]}


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


async def do(browser: ClientSession, deed: str, **body: Any) -> dict[str, Any]:
    async with browser.post(f"/page/{deed}", json={"as": ANA, "channel": DOCS, **body}) as answer:
        assert answer.status == 200
        outcome: dict[str, Any] = await answer.json()
        return outcome


async def upload(browser: ClientSession, content: bytes, *, user: str = ANA, name: str = "a.txt") -> dict[str, Any]:
    headers = {"Content-Type": "application/octet-stream"}
    async with browser.post(
        "/page/upload", params={"as": user, "name": name}, data=BytesIO(content), headers=headers
    ) as answer:
        outcome: dict[str, Any] = await answer.json()
        return outcome


async def snapshot(browser: ClientSession, user: str) -> dict[str, Any]:
    async with browser.get("/page/snapshot", params={"as": user}) as answer:
        body: dict[str, Any] = await answer.json()
        return body


async def test_views_are_shown_only_to_their_person_and_without_private_metadata(
    workspace: WorkspaceServer, browser: ClientSession
) -> None:
    """Both in the snapshot and in the stream."""
    client = AsyncWebClient(token=workspace.credentials.bot_token, base_url=workspace.api_url)
    async with (
        browser.ws_connect("/page/stream", params={"as": ANA}) as ana,
        browser.ws_connect("/page/stream", params={"as": BEN}) as ben,
    ):
        for stream in (ana, ben):
            await stream.receive_json()
        await client.views_publish(user_id=ANA, view=HOME)
        view = workspace.views.open(ANA, MODAL)
        await workspace.people["ben"].say("general", "for ben as well")
        home, modals = await ana.receive_json(), await ana.receive_json()
        assert (home["type"], home["home"]["view"]["blocks"][0]["block_id"]) == ("home", "b")
        assert (modals["type"], [each["id"] for each in modals["views"]]) == ("modals", [view.id])
        assert "the app's own" not in str(modals)
        assert (await ben.receive_json())["type"] == "message"
    seen = await snapshot(browser, ANA)
    assert seen["modals"] == modals["views"]
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
    assert (await upload(browser, bytes(5 << 20)))["error"] == "That file is too large."
    async with browser.post("/page/upload", params={"as": ANA, "name": "a"}, data={"a": "form"}) as answer:
        assert (await answer.json())["ok"] is False
    (message,) = workspace.channels.messages("docs")
    assert [file.name for file in message.files or ()] == ["a.txt"]


async def test_unsent_uploads_do_not_fill_the_memory(browser: ClientSession) -> None:
    """The oldest ones are dropped."""
    first = (await upload(browser, b"first"))["upload"]
    later = [(await upload(browser, b"x", name=f"{number}.txt"))["upload"] for number in range(MAX_WAITING)]
    assert (await do(browser, "send", text="x", uploads=[first]))["ok"] is False
    assert (await do(browser, "send", text="x", uploads=later[:1]))["ok"]


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
