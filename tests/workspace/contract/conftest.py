"""A workspace, and who calls it: the app, or the page of a browser."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientSession
from slack_sdk.web.async_client import AsyncWebClient
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.workspace_world import client_of, payloads, running


@pytest.fixture
async def workspace() -> AsyncIterator[FaultyWorkspace]:
    async with running(ack_timeout=20, retry_delays=(0.01, 0.02, 0.03), trigger_lifetime=60) as server:
        yield server


@pytest.fixture
def client(workspace: FaultyWorkspace) -> AsyncWebClient:
    """The app's own Web API client, which tries nothing twice."""
    return client_of(workspace)


@pytest.fixture
async def bodies(workspace: FaultyWorkspace) -> AsyncIterator[list[dict[str, Any]]]:
    """What the app was sent."""
    async with payloads(workspace) as taken:
        yield taken


@pytest.fixture
async def browser(workspace: FaultyWorkspace) -> AsyncIterator[ClientSession]:
    async with ClientSession(workspace.origin, headers={"Origin": workspace.origin}) as session:
        yield session
