"""A real slack-bolt app over a real Socket Mode connection to the workspace: commands, events, menus and shortcuts."""

import asyncio
from typing import Any

from support.servers.slack_faults import FaultyWorkspace
from support.worlds.workspace_world import bolt_app, connected


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
