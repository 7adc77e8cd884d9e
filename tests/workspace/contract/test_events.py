"""The events that the app receives and what they say, the files in them, and who may read those."""

from typing import Any

import pytest
from aiohttp import ClientSession
from support.worlds.workspace_world import client_of, error, payloads, running

from bot.workspace import AppConfig, SlackError, WorkspaceServer
from bot.workspace.model.entities import Upload

DOCS = "C0DOCS001"


def kinds(bodies: list[dict[str, Any]]) -> list[str]:
    return [".".join(filter(None, (b["event"]["type"], b["event"].get("subtype")))) for b in bodies]


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


async def test_only_subscribed_and_granted_events_are_sent() -> None:
    app = AppConfig(events=frozenset({"app_mention", "message.channels"}), scopes=frozenset({"app_mentions:read"}))
    async with running(app) as server, payloads(server) as taken:
        await server.people["ana"].say("docs", "hello @pagehand")
        await server.deliveries.settled()
    assert [body["event"]["type"] for body in taken] == ["app_mention"]


async def test_people_cannot_forward_what_they_cannot_see(workspace: WorkspaceServer) -> None:
    secret = await workspace.people["ana"].say("leads", "secret")
    with pytest.raises(SlackError, match="channel_not_found"):
        await workspace.people["gia"].forward("leads", secret.ts, "docs")


NOTES = Upload("notes.md", b"# Notes\n\nfirst\nsecond\nthird\nfourth\n")


async def fetched(url: str, token: str | None) -> tuple[int, str, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, answer.content_type, await answer.read()


async def test_without_the_right_token_there_is_a_sign_in_page(workspace: WorkspaceServer) -> None:
    said = await workspace.people["ana"].say("docs", "", files=[NOTES])
    assert said.files
    url = (await client_of(workspace).files_info(file=said.files[0].id))["file"]["url_private_download"]
    for token in (None, "xoxb-wrong", workspace.credentials.app_token):
        status, kind, body = await fetched(url, token)
        assert (status, kind) == (200, "text/html")
        assert NOTES.content not in body


async def test_files_in_channels_without_the_bot_are_not_found(workspace: WorkspaceServer) -> None:
    said = await workspace.people["ana"].say("leads", "", files=[NOTES])
    assert said.files
    assert await error(client_of(workspace).files_info(file=said.files[0].id)) == "file_not_found"
    url = f"{workspace.origin}/files-pri/T0LOCAL01-{said.files[0].id}/notes.md"
    assert (await fetched(url, workspace.credentials.bot_token))[0] == 404


async def test_an_uploaded_page_cannot_run_in_the_workspace(workspace: WorkspaceServer) -> None:
    """It would have the same origin as the workspace's own page."""
    said = await workspace.people["ana"].say("docs", "", files=[Upload("x.html", b"<script>alert(1)</script>")])
    assert said.files
    url = (await client_of(workspace).files_info(file=said.files[0].id))["file"]["url_private"]
    headers = {"Authorization": f"Bearer {workspace.credentials.bot_token}"}
    async with ClientSession() as session, session.get(url, headers=headers) as answer:
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
