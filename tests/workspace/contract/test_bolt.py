"""A real slack-bolt app over a real Socket Mode connection to the workspace: commands, events, menus and shortcuts."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.workspace_world import bolt_app, connected

from bot.workspace import WorkspaceServer
from bot.workspace.model.entities import Upload


async def test_an_unacknowledged_command_times_out(workspace: FaultyWorkspace) -> None:
    workspace.deliveries.ack_timeout = 0.1
    app = bolt_app(workspace)
    release = asyncio.Event()

    @app.command("/docs")
    async def docs() -> None:
        await release.wait()

    async with connected(workspace, app):
        ana = workspace.people["ana"]
        answer = await ana.command("docs", "/docs", "x")
        release.set()

    assert answer.error == "operation_timeout"
    assert [m.text for m in ana.ephemerals("docs")] == ['/docs failed with the error "operation_timeout"']


async def test_a_command_without_a_connection_fails_at_once(workspace: FaultyWorkspace) -> None:
    answer = await workspace.people["ana"].command("docs", "/docs", "x")
    assert answer.error == "dispatch_failed"


async def test_an_unacknowledged_event_is_sent_again_as_a_retry(workspace: FaultyWorkspace) -> None:
    workspace.deliveries.ack_timeout = 0.1
    app = bolt_app(workspace)
    attempts: list[tuple[str, str]] = []

    @app.middleware
    async def fail_twice(req: Any, next: Any) -> None:  # noqa: A002 - Bolt finds arguments by name
        attempts.append((req.headers["x-slack-retry-num"][0], req.headers["x-slack-retry-reason"][0]))
        if len(attempts) < 3:
            raise RuntimeError("not now")
        await next()

    @app.event("message")
    async def on_message() -> None:
        return

    async with connected(workspace, app):
        await workspace.people["ana"].say("docs", "hello")
        await workspace.changes.wait_for(lambda: any(d.acked for d in workspace.deliveries.records))

    assert attempts == [("0", ""), ("1", "timeout"), ("2", "timeout")]


async def test_each_payload_goes_to_one_connection(workspace: FaultyWorkspace) -> None:
    taken: dict[str, list[str]] = {"one": [], "two": []}
    apps = {name: bolt_app(workspace) for name in taken}

    def listen(name: str) -> None:
        @apps[name].event("message")
        async def on_message(event: dict[str, Any]) -> None:
            taken[name].append(event["text"])

    for name in apps:
        listen(name)
    async with connected(workspace, apps["one"]), connected(workspace, apps["two"]):
        await workspace.changes.wait_for(lambda: len(workspace.socket_mode.connections) == 2)
        said = [(await workspace.people["ana"].say("docs", f"number {n}")).text for n in range(10)]
        await workspace.deliveries.settled()
    assert sorted(taken["one"] + taken["two"]) == sorted(said)
    assert all(taken.values())


async def test_a_menu_in_a_message_sends_the_choice(workspace: FaultyWorkspace) -> None:
    """In the action, and in the state with the values of the other elements."""
    app = bolt_app(workspace)
    pressed: list[dict[str, Any]] = []

    @app.action("project")
    async def chosen(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        pressed.append(body)

    options = [{"text": {"type": "plain_text", "text": name}, "value": name} for name in ("one", "two")]
    menu = {"type": "static_select", "action_id": "project", "options": options}
    other = {"type": "static_select", "action_id": "other", "options": options, "initial_option": options[0]}
    blocks = [{"type": "actions", "block_id": "menus", "elements": [menu, other]}]
    async with connected(workspace, app):
        card = await app.client.chat_postMessage(channel="C0DOCS001", text="Which project?", blocks=blocks)
        assert (await workspace.people["ana"].press("docs", card["ts"], "project", value="two")).ok
    (body,) = pressed
    assert body["actions"][0]["selected_option"] == options[1]
    assert body["state"]["values"] == {
        "menus": {
            "project": {"type": "static_select", "selected_option": options[1]},
            "other": {"type": "static_select", "selected_option": options[0]},
        }
    }


ON_MESSAGE, ANYWHERE = "hand_to_pagehand", "new_task"


@pytest.fixture
async def taken(workspace: WorkspaceServer) -> AsyncIterator[list[dict[str, Any]]]:
    """The shortcut payloads that a Bolt app received."""
    app = bolt_app(workspace)
    bodies: list[dict[str, Any]] = []

    @app.shortcut({"type": "message_action", "callback_id": ON_MESSAGE})
    async def on_message(ack: Any, body: dict[str, Any], context: Any) -> None:
        bodies.append({**body, "context_channel": context.channel_id})
        await ack()

    @app.shortcut({"type": "shortcut", "callback_id": ANYWHERE})
    async def anywhere(ack: Any, body: dict[str, Any]) -> None:
        bodies.append(body)
        await ack()

    async with connected(workspace, app):
        yield bodies


async def test_a_message_shortcut_has_the_whole_message(
    workspace: WorkspaceServer, taken: list[dict[str, Any]]
) -> None:
    """Its text, blocks, files and thread."""
    ana, ben = workspace.people["ana"], workspace.people["ben"]
    root = await ana.say("docs", "Where is the guide?")
    reply = await ben.say("docs", "It is *gone*", thread_ts=root.ts, files=[Upload("log.txt", b"error\n")])
    assert (await ana.shortcut("docs", reply.ts, ON_MESSAGE)).ok
    (body,) = taken
    assert (body["type"], body["callback_id"], body["message_ts"]) == ("message_action", ON_MESSAGE, reply.ts)
    assert body["user"]["id"] == ana.id
    assert body["channel"] == {"id": "C0DOCS001", "name": "docs"}
    assert body["context_channel"] == "C0DOCS001"
    assert body["team"] == {"id": "T0LOCAL01", "domain": "local"}
    message = body["message"]
    assert (message["user"], message["thread_ts"], message["text"]) == (ben.id, root.ts, "It is *gone*")
    assert (message["blocks"][0]["type"], message["files"][0]["name"]) == ("rich_text", "log.txt")


async def test_a_global_shortcut_has_neither_channel_nor_response_url(
    workspace: WorkspaceServer, taken: list[dict[str, Any]]
) -> None:
    assert (await workspace.people["ben"].global_shortcut(ANYWHERE)).ok
    (body,) = taken
    assert (body["type"], body["user"]["id"]) == ("shortcut", "U0BEN0001")
    assert not {"channel", "message", "response_url"} & body.keys()
