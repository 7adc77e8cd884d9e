"""Real slack-bolt apps over a real Socket Mode connection, with the workspace in Slack's place."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.workspace import WorkspaceServer


def bolt_app(workspace: WorkspaceServer) -> AsyncApp:
    client = AsyncWebClient(token=workspace.credentials.bot_token, base_url=workspace.api_url)
    return AsyncApp(client=client, signing_secret=workspace.credentials.signing_secret)


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
