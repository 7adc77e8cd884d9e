"""A workspace with the app's side: its client, a real slack-bolt app, or a connection that only the test listens on."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from support.oracles.slack_samples import invented
from support.servers.slack_faults import FaultyWorkspace

from bot.workspace import AppConfig, WorkspaceServer


@asynccontextmanager
async def running(app: AppConfig | None = None, **options: Any) -> AsyncIterator[FaultyWorkspace]:
    server = FaultyWorkspace(app, **options)
    await server.start()
    try:
        yield server
        assert not (made_up := invented(server)), made_up
    finally:
        await server.stop()


def client_of(workspace: WorkspaceServer) -> AsyncWebClient:
    return AsyncWebClient(workspace.credentials.bot_token, workspace.api_url, retry_handlers=[])


async def refused(call: Any) -> dict[str, Any]:
    """Returns Slack's answer to a call that it must refuse."""
    with pytest.raises(SlackApiError) as caught:
        await call
    answer: dict[str, Any] = dict(caught.value.response.data)
    return answer


async def error(call: Any) -> str:
    """Returns the code of the error."""
    return str((await refused(call))["error"])


@asynccontextmanager
async def payloads(workspace: WorkspaceServer) -> AsyncIterator[list[dict[str, Any]]]:
    """Yields the list of those received so far, each acknowledged."""
    taken: list[dict[str, Any]] = []
    async with ClientSession() as session, session.ws_connect(workspace.socket_mode.open_url()) as ws:
        await ws.receive_json()

        async def take() -> None:
            async for frame in ws:
                envelope = json.loads(frame.data)
                taken.append(envelope["payload"])
                await ws.send_json({"envelope_id": envelope["envelope_id"]})

        task = asyncio.create_task(take())
        yield taken
        task.cancel()


def bolt_app(workspace: WorkspaceServer) -> AsyncApp:
    return AsyncApp(client=client_of(workspace), signing_secret=workspace.credentials.signing_secret)


@asynccontextmanager
async def connected(workspace: WorkspaceServer, app: AsyncApp) -> AsyncIterator[Any]:
    handler: Any = AsyncSocketModeHandler(
        app, workspace.credentials.app_token, web_client=app.client, ping_interval=0.2
    )
    try:
        await handler.connect_async()
        await workspace.changes.wait_for(lambda: workspace.connected)
        yield handler
    finally:
        await handler.close_async()
