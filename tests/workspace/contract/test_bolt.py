"""A real slack-bolt app over a real Socket Mode connection to the workspace."""

import asyncio
from typing import Any

from support.servers.slack_faults import FaultyWorkspace
from support.worlds.workspace_world import bolt_app, connected


async def test_the_answer_to_a_command_is_ephemeral(workspace: FaultyWorkspace) -> None:
    app = bolt_app(workspace)
    seen: list[dict[str, Any]] = []

    @app.command("/docs")
    async def docs(ack: Any, command: dict[str, Any]) -> None:
        seen.append(command)
        await ack(f"You said: {command['text']}")

    async with connected(workspace, app):
        ana = workspace.people["ana"]
        answer = await ana.command("docs", "/docs", "tell @ben about #general & <more>")

    assert answer.ok
    assert answer.text.startswith("You said: tell &lt;@U0BEN0001&gt;") or "<@U0BEN0001>" in answer.text
    assert seen[0]["text"] == "tell <@U0BEN0001> about <#C0GENERAL|general> &amp; &lt;more&gt;"
    assert seen[0]["channel_name"] == "docs"
    assert [m.text for m in ana.ephemerals("docs")] == [answer.text]
    assert workspace.people["ben"].ephemerals("docs") == []


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


async def test_stopping_ends_a_waiting_command(workspace: FaultyWorkspace) -> None:
    app = bolt_app(workspace)
    started = asyncio.Event()

    @app.command("/docs")
    async def docs() -> None:
        started.set()
        await asyncio.Event().wait()

    async with connected(workspace, app):
        waiting = asyncio.create_task(workspace.people["ana"].command("docs", "/docs", "x"))
        await started.wait()
        await workspace.stop()
        assert (await waiting).error == "dispatch_failed"


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
