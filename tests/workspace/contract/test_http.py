"""Delivery by signed HTTP requests to a real slack-bolt app, which checks the signatures."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from support.worlds.workspace_world import client_of, running

from bot.workspace import AppConfig, Credentials, SlashCommand, WorkspaceServer

SECRET = "a-signing-secret"


class Receiver:
    """An HTTP server around a Bolt app, which can fail on request."""

    def __init__(self) -> None:
        self.app = AsyncApp(token="xoxb-unused", signing_secret=SECRET)
        self.headers: list[dict[str, str]] = []
        self.failures = 0

    async def handle(self, request: web.Request) -> web.Response:
        self.headers.append(dict(request.headers))
        if self.failures:
            self.failures -= 1
            return web.Response(status=500)
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
    application.router.add_post("/slack/events", receiver.handle)
    async with TestServer(application) as server:
        yield str(server.make_url("/slack/events"))


def installed(url: str, secret: str = SECRET) -> AbstractAsyncContextManager[WorkspaceServer]:
    app = replace(AppConfig(), request_url=url, commands=(SlashCommand("/docs", url=url),))
    return running(app, credentials=Credentials(signing_secret=secret), retry_delays=(0.01, 0.01, 0.01))


@pytest.fixture
async def workspace(url: str, receiver: Receiver) -> AsyncIterator[WorkspaceServer]:
    async with installed(url) as server:
        receiver.app = AsyncApp(client=client_of(server), signing_secret=SECRET)
        yield server


async def test_a_signed_command_is_answered(workspace: WorkspaceServer, receiver: Receiver) -> None:
    @receiver.app.command("/docs")
    async def docs(ack: Any, command: dict[str, Any]) -> None:
        await ack(text=f"heard {command['text']}")

    answer = await workspace.people["ana"].command("docs", "/docs", "a&b=c ✓")
    assert answer.text == "heard a&amp;b=c ✓"
    assert [m.text for m in workspace.people["ana"].ephemerals("docs")] == ["heard a&amp;b=c ✓"]


async def test_a_wrong_signature_is_refused_by_the_app(url: str) -> None:
    async with installed(url, "another") as server:
        assert (await server.people["ana"].command("docs", "/docs", "x")).error == "dispatch_failed"


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
