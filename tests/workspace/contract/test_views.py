"""Modals with a real slack-bolt app: opened, filled in, answered in all of Slack's ways, closed."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_bolt.async_app import AsyncApp
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.modal_samples import input_block, modal, plain
from support.worlds.workspace_world import bolt_app, client_of, connected, error, refused

from bot.workspace import SlackError
from bot.workspace.model.views import View
from bot.workspace.people import Actor

TASK = input_block("task", "Task", {"type": "plain_text_input", "multiline": True, "max_length": 3000})


class ModalApp:
    """An app that opens a modal by its command and gives the submissions a prepared answer."""

    def __init__(self, workspace: FaultyWorkspace) -> None:
        self.workspace = workspace
        self.ana: Actor = workspace.people["ana"]
        self.client = client_of(workspace)
        self.view = modal(TASK)
        self.answer: dict[str, Any] = {}
        self.submitted: list[dict[str, Any]] = []
        self.closed: list[dict[str, Any]] = []
        self.triggers: list[str] = []

    def app(self) -> AsyncApp:
        app = bolt_app(self.workspace)

        @app.command("/docs")
        async def docs(ack: Any, command: dict[str, Any]) -> None:
            await ack()
            self.triggers.append(command["trigger_id"])

        @app.view("task")
        async def submitted(ack: Any, body: dict[str, Any]) -> None:
            self.submitted.append(body)
            await ack(**self.answer)

        @app.view_closed("task")
        async def closed(ack: Any, body: dict[str, Any]) -> None:
            self.closed.append(body)
            await ack()

        return app

    @property
    def shown(self) -> View:
        """The modal that Ana sees."""
        assert self.ana.views.top is not None
        return self.ana.views.top

    async def trigger(self) -> str:
        """Has Ana run the command, and returns its trigger id once the app has it."""
        before = len(self.triggers)
        assert (await self.ana.command("docs", "/docs")).ok
        await self.workspace.changes.wait_for(lambda: len(self.triggers) > before)
        return self.triggers[-1]

    async def open(self, view: dict[str, Any] | None = None) -> dict[str, Any]:
        opened = await self.client.views_open(trigger_id=await self.trigger(), view=view or self.view)
        found: dict[str, Any] = opened["view"]
        return found


@pytest.fixture
async def modal_app(workspace: FaultyWorkspace) -> AsyncIterator[ModalApp]:
    made = ModalApp(workspace)
    async with connected(workspace, made.app()):
        yield made


async def test_a_modal_is_opened_filled_in_and_submitted(modal_app: ModalApp) -> None:
    """The app gets all values and no channel, and an empty answer closes the modal."""
    opened = await modal_app.open(modal(TASK, private_metadata="p", notify_on_close=True))
    shown = modal_app.shown
    assert (shown.id, shown.title, shown.submit) == (opened["id"], "New task", "Start")
    await modal_app.ana.views.enter("task", "Write it\ndown")
    assert (await modal_app.ana.views.submit()).ok
    (body,) = modal_app.submitted
    assert body["view"]["state"]["values"] == {
        "task": {"task": {"type": "plain_text_input", "value": "Write it\ndown"}}
    }
    assert body["view"]["private_metadata"] == "p"
    assert body["view"]["id"] == opened["id"]
    assert (body["user"]["id"], body["team"]["id"], "channel" in body) == (modal_app.ana.id, "T0LOCAL01", False)
    assert modal_app.ana.views.top is None
    assert modal_app.closed == []


async def test_errors_that_slack_finds_never_reach_the_app(modal_app: ModalApp) -> None:
    """An empty required input and a text that is too long."""
    await modal_app.open(
        modal(TASK, input_block("note", "Note", {"type": "plain_text_input", "max_length": 3}, optional=True))
    )
    await modal_app.ana.views.enter("note", "long", block_id="note")
    result = await modal_app.ana.views.submit()
    assert (result.ok, set(result.errors)) == (False, {"task", "note"})
    await modal_app.ana.views.enter("note", "")
    await modal_app.ana.views.enter("task", "go")
    assert (await modal_app.ana.views.submit()).ok
    (body,) = modal_app.submitted
    assert body["view"]["state"]["values"]["note"]["note"] == {"type": "plain_text_input", "value": None}


async def test_an_answer_can_update_the_view_and_keeps_what_was_typed(modal_app: ModalApp) -> None:
    opened = await modal_app.open()
    await modal_app.ana.views.enter("task", "kept")
    modal_app.answer = {"response_action": "update", "view": modal(TASK, title="Sure?")}
    assert (await modal_app.ana.views.submit()).ok
    top = modal_app.shown
    assert (top.id, top.title, top.values["task"]["task"]["value"]) == (opened["id"], "Sure?", "kept")
    assert top.hash != opened["hash"]


@pytest.mark.parametrize(
    "answer",
    [
        {"response_action": "errors", "errors": {"nowhere": "x"}},
        {"response_action": "update", "view": {"type": "modal", "title": plain("T" * 25), "blocks": []}},
        {"response_action": "update", "view": {"type": "home", "blocks": []}},
    ],
)
async def test_an_invalid_answer_leaves_the_modal_open(modal_app: ModalApp, answer: dict[str, Any]) -> None:
    await modal_app.open()
    modal_app.answer = answer
    await modal_app.ana.views.enter("task", "kept")
    assert (await modal_app.ana.views.submit()).error == "dispatch_unknown_error"
    assert modal_app.shown.values["task"]["task"]["value"] == "kept"


async def test_the_app_hears_of_closing_only_on_request(modal_app: ModalApp) -> None:
    """The event does not have what was entered. The cross at the top closes all and says so."""
    await modal_app.open()
    await modal_app.ana.views.close()
    opened = await modal_app.open(modal(TASK, notify_on_close=True))
    await modal_app.ana.views.enter("task", "lost")
    await modal_app.ana.views.close()
    modal_app.answer = {"response_action": "push", "view": modal(TASK)}
    await modal_app.open(modal(TASK, notify_on_close=True))
    await modal_app.ana.views.enter("task", "on")
    await modal_app.ana.views.submit()
    await modal_app.ana.views.close(clear=True)
    assert [body["is_cleared"] for body in modal_app.closed] == [False, True]
    assert (modal_app.closed[0]["view"]["id"], modal_app.closed[0]["view"]["state"]) == (opened["id"], {"values": {}})
    with pytest.raises(SlackError, match="not_found"):
        await modal_app.ana.views.submit()


async def test_a_trigger_opens_one_view_before_it_expires(modal_app: ModalApp) -> None:
    async def opening(trigger: str) -> str:
        return await error(modal_app.client.views_open(trigger_id=trigger, view=modal(TASK)))

    trigger = await modal_app.trigger()
    await modal_app.client.views_open(trigger_id=trigger, view=modal(TASK))
    assert await opening(trigger) == "invalid_trigger_id"
    modal_app.workspace.triggers.lifetime = -1
    assert await opening(await modal_app.trigger()) == "expired_trigger_id"
    assert await opening("1.2.a") == "invalid_trigger_id"


async def test_a_view_is_updated_by_its_id(modal_app: ModalApp) -> None:
    """A stale hash is a conflict, and a closed view is not found."""
    opened = await modal_app.open()
    await modal_app.ana.views.enter("task", "kept")
    renamed = modal(TASK, title="Renamed")
    updated = await modal_app.client.views_update(view_id=opened["id"], hash=opened["hash"], view=renamed)
    assert updated["view"]["state"]["values"]["task"]["task"]["value"] == "kept"
    stale = modal_app.client.views_update(view_id=opened["id"], hash=opened["hash"], view=modal(TASK))
    assert await error(stale) == "hash_conflict"
    assert modal_app.shown.title == "Renamed"
    await modal_app.ana.views.close()
    assert await error(modal_app.client.views_update(view_id=opened["id"], view=modal(TASK))) == "not_found"


LONG = "x" * 3001


@pytest.mark.parametrize(
    ("view", "place"),
    [
        (modal(TASK, title="T" * 25), "/view/modal/title/text"),
        (modal(TASK, close=plain("T" * 25)), "/view/modal/close/text"),
        (modal(TASK, submit=None), "/view/modal"),
        (modal(TASK, private_metadata=LONG), "/view/modal/private_metadata"),
        (modal(*[{"type": "section", "text": {"type": "mrkdwn", "text": "x"}}] * 101), "/view/modal/blocks"),
        (modal({"type": "markdown", "text": "x"}), "/view/modal/blocks/0"),
        (modal(input_block("b", "B", {"type": "button", "text": plain("x")})), "/blocks/0/input/element"),
        (modal(TASK, TASK), "/view/blocks"),
        (modal(TASK, colour="red"), "/view/modal/colour"),
        ({"type": "modal", "blocks": []}, "/view/modal/title"),
        ({"type": "home", "blocks": []}, "/view/type"),
    ],
)
async def test_an_invalid_view_is_refused(modal_app: ModalApp, view: dict[str, Any], place: str) -> None:
    answer = await refused(modal_app.client.api_call("views.open", json={"trigger_id": "1.2.a", "view": view}))
    assert answer["error"] == "invalid_arguments"
    assert any(said.endswith(f"{place}]") for said in answer["response_metadata"]["messages"])
