"""What a workspace sends to its app, over a connection on which only the test listens."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientSession

from bot.workspace import WorkspaceServer


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
