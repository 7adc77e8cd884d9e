"""The App Home: opened, published for each person, and used; and its Messages tab."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from support.worlds.workspace_world import bolt_app, client_of, connected, error, running

from bot.workspace import AppConfig, SlackError, WorkspaceServer
from bot.workspace.model.app_config import MessagesTab

BUTTON = {"type": "button", "action_id": "start", "text": {"type": "plain_text", "text": "Start"}, "value": "1"}


def home(words: str = "My jobs") -> dict[str, Any]:
    line = {"type": "section", "text": {"type": "mrkdwn", "text": words}}
    actions = {"type": "actions", "block_id": "buttons", "elements": [BUTTON]}
    return {"type": "home", "callback_id": "home", "blocks": [line, actions]}


class House:
    """A workspace with an app that records what happens in its Home."""

    def __init__(self, workspace: WorkspaceServer) -> None:
        self.workspace = workspace
        self.app = bolt_app(workspace)
        self.client = client_of(workspace)
        self.opened: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.pressed: list[dict[str, Any]] = []

        @self.app.event("app_home_opened")
        async def opened(event: dict[str, Any]) -> None:
            self.opened.put_nowait(event)

        @self.app.action("start")
        async def pressed(ack: Any, body: dict[str, Any]) -> None:
            self.pressed.append(body)
            await ack()


@pytest.fixture
async def house(workspace: WorkspaceServer) -> AsyncIterator[House]:
    made = House(workspace)
    async with connected(workspace, made.app):
        yield made


async def test_the_event_for_opening_home_has_the_view(house: House) -> None:
    """The event has a view only after the app has published one."""
    ana = house.workspace.people["ana"]
    assert await ana.views.open_home() is None
    first = await house.opened.get()
    direct = house.workspace.channels["ana"].id
    assert (first["tab"], first["user"], first["channel"], "view" in first) == ("home", ana.id, direct, False)
    published = await house.client.views_publish(user_id=ana.id, view=home())
    await ana.views.open_home()
    second = await house.opened.get()
    assert second["view"]["id"] == published["view"]["id"]
    assert (second["view"]["type"], second["view"]["callback_id"]) == ("home", "home")


async def test_a_stale_home_does_not_replace_a_newer_one(house: House) -> None:
    ana = house.workspace.people["ana"]
    first = await house.client.views_publish(user_id=ana.id, view=home())
    stale = first["view"]["hash"]
    second = await house.client.views_publish(user_id=ana.id, view=home("Two"), hash=stale)
    assert second["view"]["id"] == first["view"]["id"]
    assert await error(house.client.views_publish(user_id=ana.id, view=home("Three"), hash=stale)) == "hash_conflict"


async def test_a_button_in_home_opens_a_modal(house: House) -> None:
    """Its payload has the view and no channel, and its trigger opens a modal."""
    ana = house.workspace.people["ana"]
    published = await house.client.views_publish(user_id=ana.id, view=home())
    assert (await ana.views.press("start")).ok
    (body,) = house.pressed
    assert body["container"] == {"type": "view", "view_id": published["view"]["id"]}
    assert (body["view"]["type"], "channel" in body, "response_url" in body) == ("home", False, False)
    modal = {"type": "modal", "title": {"type": "plain_text", "text": "New"}, "blocks": []}
    await house.client.views_open(trigger_id=body["trigger_id"], view=modal)
    assert ana.views.top is not None
    assert ana.views.top.title == "New"


async def test_what_cannot_be_published(house: House) -> None:
    ana, client = house.workspace.people["ana"], house.client
    many = {"type": "home", "blocks": [{"type": "divider"}] * 101}
    assert await error(client.views_publish(user_id=ana.id, view=many)) == "invalid_arguments"
    assert await error(client.views_publish(user_id="U0NOBODY", view=home())) == "invalid_arguments"
    modal = {"type": "modal", "title": {"type": "plain_text", "text": "New"}, "blocks": []}
    assert await error(client.views_publish(user_id=ana.id, view=modal)) == "invalid_arguments"


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
