"""Delivery by signed HTTP requests to a real slack-bolt app, which checks the signatures."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from support.worlds.workspace_world import client_of, running

from bot.workspace import AppConfig, Credentials, SlashCommand, WorkspaceServer

SECRET = "a-signing-secret"
BUTTON = {"type": "button", "action_id": "go", "text": {"type": "plain_text", "text": "Go"}, "value": "v"}
BLOCKS: list[dict[str, Any]] = [{"type": "actions", "elements": [BUTTON]}]


class Receiver:
    """An HTTP server around a Bolt app, which can fail on request."""

    def __init__(self) -> None:
        self.app = AsyncApp(token="xoxb-unused", signing_secret=SECRET)
        self.headers: list[dict[str, str]] = []
        self.failures = 0
        self.failure_headers: dict[str, str] = {}

    async def handle(self, request: web.Request) -> web.Response:
        self.headers.append(dict(request.headers))
        if self.failures:
            self.failures -= 1
            return web.Response(status=500, headers=self.failure_headers)
        response: web.Response = await to_aiohttp_response(
            await self.app.async_dispatch(await to_bolt_request(request))
        )
        return response


@pytest.fixture
async def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
async def url(receiver: Receiver) -> AsyncIterator[str]:
    application = web.Application()
    application.add_routes([web.post("/slack/events", receiver.handle)])
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    await runner.cleanup()


@pytest.fixture
async def workspace(url: str, receiver: Receiver) -> AsyncIterator[WorkspaceServer]:
    app = replace(AppConfig(), request_url=url, commands=(SlashCommand("/docs", url=url),))
    async with running(app, credentials=Credentials(signing_secret=SECRET), retry_delays=(0.01, 0.01, 0.01)) as server:
        client = client_of(server)
        receiver.app = AsyncApp(client=client, signing_secret=SECRET)
        yield server


async def test_the_request_url_is_verified_by_a_challenge(workspace: WorkspaceServer) -> None:
    assert await workspace.signed_http.verify_request_url()


async def test_a_signed_command_is_answered(workspace: WorkspaceServer, receiver: Receiver) -> None:
    @receiver.app.command("/docs")
    async def docs(ack: Any, command: dict[str, Any]) -> None:
        await ack(text=f"heard {command['text']}")

    answer = await workspace.people["ana"].command("docs", "/docs", "a&b=c ✓")
    assert answer.text == "heard a&amp;b=c ✓"
    assert [m.text for m in workspace.people["ana"].ephemerals("docs")] == ["heard a&amp;b=c ✓"]


async def test_a_wrong_signature_is_refused_by_the_app(url: str, receiver: Receiver) -> None:
    app = replace(AppConfig(), request_url=url, commands=(SlashCommand("/docs", url=url),))
    async with running(app, credentials=Credentials(signing_secret="another")) as server:
        assert (await server.people["ana"].command("docs", "/docs", "x")).error == "dispatch_failed"


async def test_a_button_press_is_sent_as_a_form(workspace: WorkspaceServer, receiver: Receiver) -> None:
    pressed: list[dict[str, Any]] = []

    @receiver.app.action("go")
    async def go(ack: Any, action: dict[str, Any]) -> None:
        pressed.append(action)
        await ack()

    client = client_of(workspace)
    posted = await client.chat_postMessage(channel="C0DOCS001", text="t", blocks=BLOCKS)
    assert (await workspace.people["ben"].press("docs", posted["ts"], "go")).ok
    assert pressed[0]["value"] == "v"


async def test_a_failed_event_is_sent_again_with_retry_headers(workspace: WorkspaceServer, receiver: Receiver) -> None:
    @receiver.app.event("message")
    async def on_message() -> None:
        return

    receiver.failures = 2
    await workspace.people["ana"].say("docs", "hello")
    await workspace.deliveries.settled()
    numbers = [(h.get("X-Slack-Retry-Num"), h.get("X-Slack-Retry-Reason")) for h in receiver.headers]
    assert numbers == [(None, None), ("1", "http_error"), ("2", "http_error")]
    assert workspace.deliveries.records[-1].acked
