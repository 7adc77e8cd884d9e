"""The events that the app receives, and their content."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from slack_sdk.errors import SlackApiError
from support.worlds.workspace_world import client_of, payloads, running

from bot.workspace import AppConfig, SlackError, WorkspaceServer
from bot.workspace.model.app_config import MessagesTab

DOCS = "C0DOCS001"


def kinds(bodies: list[dict[str, Any]]) -> list[str]:
    return [".".join(filter(None, (b["event"]["type"], b["event"].get("subtype")))) for b in bodies]


async def test_the_wrapper_has_what_bolt_reads(workspace: WorkspaceServer, bodies: list[dict[str, Any]]) -> None:
    said = await workspace.people["ana"].say("docs", "hi")
    await workspace.deliveries.settled()
    (body,) = bodies
    assert (body["type"], body["api_app_id"]) == ("event_callback", workspace.app.app_id)
    assert body["event_id"].startswith("Ev")
    assert body["is_ext_shared_channel"] is False
    assert body["authorizations"][0]["user_id"] == workspace.app.bot_user_id
    event = body["event"]
    assert event["ts"] == event["event_ts"] == said.ts
    assert (event["channel"], event["channel_type"], event["team"]) == (DOCS, "channel", workspace.state.team.id)
    assert event["client_msg_id"]
    assert event["blocks"][0]["elements"][0]["elements"] == [{"type": "text", "text": "hi"}]


async def test_a_mention_arrives_twice(workspace: WorkspaceServer, bodies: list[dict[str, Any]]) -> None:
    root = await workspace.people["ana"].say("docs", "root")
    await workspace.people["ana"].say("docs", "@pagehand, do it", thread_ts=root.ts)
    await workspace.deliveries.settled()
    assert kinds(bodies) == ["message", "message", "app_mention"]
    assert bodies[1]["event"]["ts"] == bodies[2]["event"]["ts"]
    assert bodies[2]["event"]["thread_ts"] == root.ts
    assert bodies[2]["event"]["text"] == f"<@{workspace.app.bot_user_id}>, do it"
    assert bodies[1]["event_id"] != bodies[2]["event_id"]


async def test_every_kind_of_message(workspace: WorkspaceServer, bodies: list[dict[str, Any]]) -> None:
    ana, ben = workspace.people["ana"], workspace.people["ben"]
    root = await ana.say("docs", "root")
    await ben.say("docs", "for all", thread_ts=root.ts, broadcast=True)
    await ben.say("docs", "a file", thread_ts=root.ts, files=["notes.md"])
    await ana.edit("docs", root.ts, "edited")
    last = await ana.say("docs", "gone soon")
    await ana.delete("docs", last.ts)
    workspace.state.leave(workspace.channels["docs"], ben.id)
    await ben.join("docs")
    await workspace.deliveries.settled()
    assert kinds(bodies) == [
        "message",
        "message.thread_broadcast",
        "message.file_share",
        "message.message_changed",
        "message",
        "message.message_deleted",
        "message.channel_leave",
        "message.channel_join",
        "member_joined_channel",
    ]
    changed = bodies[3]["event"]
    assert (changed["message"]["text"], changed["previous_message"]["text"]) == ("edited", "root")
    assert bodies[1]["event"]["root"]["ts"] == root.ts
    assert bodies[2]["event"]["files"][0]["name"] == "notes.md"
    assert bodies[5]["event"]["deleted_ts"] == last.ts


async def test_the_bot_receives_its_own_messages(workspace: WorkspaceServer, bodies: list[dict[str, Any]]) -> None:
    client = client_of(workspace)
    posted = await client.chat_postMessage(channel=DOCS, text="<@U0PAGEHND> is me")
    await client.chat_update(channel=DOCS, ts=posted["ts"], text="changed")
    await client.reactions_add(channel=DOCS, timestamp=posted["ts"], name="eyes")
    await workspace.deliveries.settled()
    assert kinds(bodies) == ["message", "message.message_changed", "reaction_added"]
    assert bodies[0]["event"]["bot_id"] == workspace.app.bot_id
    assert bodies[2]["event"]["item"] == {"type": "message", "channel": DOCS, "ts": posted["ts"]}


async def test_only_where_the_bot_is_a_member(workspace: WorkspaceServer, bodies: list[dict[str, Any]]) -> None:
    ana = workspace.people["ana"]
    await ana.say("general", "not for the bot")
    await ana.say("leads", "nor this, @pagehand")
    await ana.say("pagehand", "a direct message")
    await workspace.deliveries.settled()
    assert [b["event"]["text"] for b in bodies] == ["a direct message"]
    assert bodies[0]["event"]["channel_type"] == "im"
    await ana.invite("general", "@pagehand")
    await ana.say("general", "now it is")
    await workspace.deliveries.settled()
    assert kinds(bodies)[1:] == ["message.channel_join", "member_joined_channel", "message"]
    assert bodies[2]["event"]["inviter"] == ana.id


async def test_a_person_of_another_team(workspace: WorkspaceServer, bodies: list[dict[str, Any]]) -> None:
    emil = workspace.people["emil"]
    await emil.say("partners", "hello from outside")
    await workspace.deliveries.settled()
    assert bodies[0]["is_ext_shared_channel"] is True
    assert bodies[0]["event"]["user_team"] == bodies[0]["event"]["team"] == "T0PARTNER"
    assert (await emil.command("partners", "/docs", "x")).error == "invalid_command"
    with pytest.raises(SlackError, match="channel_not_found"):
        await emil.say("docs", "not mine")


async def test_archiving_and_removal_are_events(workspace: WorkspaceServer, bodies: list[dict[str, Any]]) -> None:
    workspace.channels.archive("partners")
    workspace.channels.remove_bot("docs")
    await workspace.deliveries.settled()
    assert kinds(bodies) == ["channel_archive", "channel_left"]


async def test_only_subscribed_and_granted_events_are_sent() -> None:
    app = AppConfig(events=frozenset({"app_mention", "message.channels"}), scopes=frozenset({"app_mentions:read"}))
    async with running(app) as server, payloads(server) as taken:
        await server.people["ana"].say("docs", "hello @pagehand")
        await server.deliveries.settled()
    assert [body["event"]["type"] for body in taken] == ["app_mention"]


def test_the_products_manifest_makes_an_app() -> None:
    manifest = yaml.safe_load((Path(__file__).parents[3] / "manifest.yml").read_text())
    app = AppConfig.from_manifest(manifest)
    assert app.socket_mode
    assert app.command("/docs") is not None
    assert app.scopes == set(manifest["oauth_config"]["scopes"]["bot"])
    assert app.messages_tab is MessagesTab.OPEN


@pytest.mark.parametrize("tab", [MessagesTab.READ_ONLY, MessagesTab.OFF])
async def test_a_closed_messages_tab_takes_no_messages(tab: MessagesTab) -> None:
    async with running(AppConfig(messages_tab=tab)) as server:
        ana = server.people["ana"]
        with pytest.raises(SlackError, match="messages_tab_not_open"):
            await ana.say("pagehand", "hello")
        with pytest.raises(SlackError, match="messages_tab_not_open"):
            await ana.command("pagehand", "/docs", "hello")
        client = client_of(server)
        if tab is MessagesTab.OFF:
            with pytest.raises(SlackApiError, match="messages_tab_disabled"):
                await client.chat_postMessage(channel=ana.id, text="for you")
        else:
            await client.chat_postMessage(channel=ana.id, text="for you")
            assert server.channels.messages("ana")[-1].text == "for you"
