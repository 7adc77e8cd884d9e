"""The App Home: opened, published for each person, and used; and its Messages tab."""

from dataclasses import replace
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient
from support.worlds.workspace_world import client_of, error, running

from bot.workspace import AppConfig, SlackError, WorkspaceServer
from bot.workspace.model.app_config import MessagesTab


def home(words: str = "My jobs") -> dict[str, Any]:
    line = {"type": "section", "text": {"type": "mrkdwn", "text": words}}
    return {"type": "home", "callback_id": "home", "blocks": [line]}


async def test_the_event_for_opening_home_has_the_view(
    workspace: WorkspaceServer, client: AsyncWebClient, bodies: list[dict[str, Any]]
) -> None:
    """The event has a view only after the app has published one."""
    ana, direct = workspace.people["ana"], workspace.channels["ana"].id
    assert await ana.views.open_home() is None
    published = (await client.views_publish(user_id=ana.id, view=home()))["view"]
    await ana.views.open_home()
    await workspace.deliveries.settled()
    first, second = (body["event"] for body in bodies)
    assert (first["tab"], first["user"], first["channel"], "view" in first) == ("home", ana.id, direct, False)
    seen = second["view"]
    assert (seen["id"], seen["type"], seen["callback_id"]) == (published["id"], "home", "home")


async def test_a_disabled_tab_cannot_be_opened() -> None:
    app = replace(AppConfig(), home_tab=False, messages_tab=MessagesTab.OFF)
    async with running(app) as workspace:
        client = client_of(workspace)
        ana = workspace.people["ana"]
        with pytest.raises(SlackError, match="tab_disabled"):
            await ana.views.open_home()
        with pytest.raises(SlackError, match="tab_disabled"):
            await ana.views.open_home("messages")
        assert await error(client.views_publish(user_id=ana.id, view=home())) == "not_enabled"
