"""A real browser at the workspace's page. There is one browser per module; everything a test does
runs in the module's loop.
"""

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.browser_page import NoChromium, WorkspaceTabs, chromium
from support.worlds.workspace_world import connected, running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    try:
        async with chromium() as browser:
            yield browser
    except NoChromium as missing:
        pytest.skip(str(missing))


@pytest_asyncio.fixture(loop_scope="module")
async def workspace() -> AsyncIterator[FaultyWorkspace]:
    async with running() as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def slack(workspace: FaultyWorkspace) -> AsyncIterator[AsyncWebClient]:
    """The app's own Web API client."""
    async with aiohttp.ClientSession() as session:
        yield AsyncWebClient(token=workspace.credentials.bot_token, base_url=workspace.api_url, session=session)


@pytest_asyncio.fixture(loop_scope="module")
async def app(workspace: FaultyWorkspace, slack: AsyncWebClient) -> AsyncIterator[AsyncApp]:
    """A real Bolt app over a real Socket Mode connection; each test adds the listeners that it needs."""
    app = AsyncApp(client=slack, signing_secret=workspace.credentials.signing_secret)
    async with connected(workspace, app):
        yield app


@pytest_asyncio.fixture(loop_scope="module", params=["light"])
async def tabs(
    request: pytest.FixtureRequest, browser: Browser, workspace: FaultyWorkspace
) -> AsyncIterator[WorkspaceTabs]:
    """People at the page; the test fails for anything that the page must not do."""
    context = await browser.new_context(color_scheme=request.param, locale="en-US", timezone_id="UTC")
    tabs = WorkspaceTabs(context, workspace.origin)
    yield tabs
    await context.close()
    assert tabs.faults == []
