"""Message shortcuts and global shortcuts, with a real slack-bolt app."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.worlds.workspace_world import bolt_app, client_of, connected

from bot.workspace import Message, SlackError, WorkspaceServer
from bot.workspace.model.files import Upload

ON_MESSAGE, ANYWHERE = "hand_to_pagehand", "new_task"


@pytest.fixture
async def taken(workspace: WorkspaceServer) -> AsyncIterator[list[dict[str, Any]]]:
    """The shortcut payloads that a Bolt app received."""
    app = bolt_app(workspace)
    bodies: list[dict[str, Any]] = []

    @app.shortcut({"type": "message_action", "callback_id": ON_MESSAGE})
    async def on_message(ack: Any, body: dict[str, Any], context: Any, respond: Any) -> None:
        bodies.append({**body, "context_channel": context.channel_id})
        await ack()
        await respond("Taken")

    @app.shortcut({"type": "shortcut", "callback_id": ANYWHERE})
    async def anywhere(ack: Any, body: dict[str, Any]) -> None:
        bodies.append(body)
        await ack()

    async with connected(workspace, app):
        yield bodies


async def test_a_message_shortcut_has_the_whole_message(
    workspace: WorkspaceServer, taken: list[dict[str, Any]]
) -> None:
    """Its text, blocks, files and thread, and a response URL that answers the person who ran it."""
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
    await workspace.changes.wait_for(lambda: ana.ephemerals("docs"))
    assert [shown.text for shown in ana.ephemerals("docs")] == ["Taken"]


async def test_a_message_shortcut_opens_a_modal(workspace: WorkspaceServer, taken: list[dict[str, Any]]) -> None:
    """Also in channels without the bot."""
    ana = workspace.people["ana"]
    said = await ana.say("general", "Somebody should write this down")
    assert (await ana.shortcut("general", said.ts, ON_MESSAGE)).ok
    client = client_of(workspace)
    select = {"type": "conversations_select", "action_id": "place", "default_to_current_conversation": True}
    label = {"type": "plain_text", "text": "Where"}
    block = {"type": "input", "block_id": "place", "label": label, "element": select}
    view = {"type": "modal", "title": label, "submit": label, "blocks": [block]}
    await client.views_open(trigger_id=taken[0]["trigger_id"], view=view)
    top = ana.views.top
    assert top is not None
    assert top.values["place"]["place"]["selected_conversation"] == "C0GENERAL"


async def test_a_global_shortcut_has_neither_channel_nor_response_url(
    workspace: WorkspaceServer, taken: list[dict[str, Any]]
) -> None:
    assert (await workspace.people["ben"].global_shortcut(ANYWHERE)).ok
    (body,) = taken
    assert (body["type"], body["user"]["id"]) == ("shortcut", "U0BEN0001")
    assert not {"channel", "message", "response_url"} & body.keys()


async def test_shortcuts_that_are_not_available(workspace: WorkspaceServer, taken: list[dict[str, Any]]) -> None:
    """For people of another organization, for ephemeral messages, and with another type or name."""
    ana, emil = workspace.people["ana"], workspace.people["emil"]
    shared = await ana.say("partners", "hello")
    said = await ana.say("docs", "hello")
    only_hers = workspace.state.show_ephemeral(
        Message(said.channel, "", workspace.app.bot_user_id, "psst", ephemeral_to=ana.id)
    )
    attempts = [
        emil.shortcut("partners", shared.ts, ON_MESSAGE),
        emil.global_shortcut(ANYWHERE),
        ana.shortcut("docs", only_hers.ts, ON_MESSAGE),
        ana.shortcut("docs", said.ts, ANYWHERE),
        ana.global_shortcut(ON_MESSAGE),
        ana.global_shortcut("unknown"),
    ]
    for attempt in attempts:
        with pytest.raises(SlackError, match="shortcut_not_found"):
            await attempt
    assert taken == []
