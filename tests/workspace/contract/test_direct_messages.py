"""Direct messages, forwarded messages, broadcasts and reactions, as the app receives them."""

from dataclasses import replace
from typing import Any

import pytest
from support.worlds.workspace_world import payloads, running

from bot.workspace import AppConfig, SlackError, WorkspaceServer
from bot.workspace.model.app_config import DEFAULT_SCOPES


@pytest.mark.parametrize(
    ("scope", "kinds"),
    [
        ("im:history", ["app_home_opened", "app_mention", "message", "reaction_added"]),
        ("reactions:read", ["app_home_opened", "app_mention", "message", "message"]),
        ("app_mentions:read", ["app_home_opened", "message", "message", "reaction_added"]),
        ("channels:history", ["app_home_opened", "app_mention", "message", "reaction_added"]),
    ],
)
async def test_events_need_their_scope(scope: str, kinds: list[str]) -> None:
    async with running(replace(AppConfig(), scopes=DEFAULT_SCOPES - {scope})) as workspace:
        async with payloads(workspace) as taken:
            ana = workspace.people["ana"]
            await ana.say("pagehand", "hello")
            said = await ana.say("docs", "@pagehand hello")
            await ana.react("docs", said.ts, "x")
            await ana.views.open_home()
            await workspace.deliveries.settled()
        assert sorted(body["event"]["type"] for body in taken) == kinds


async def test_people_add_and_remove_reactions(workspace: WorkspaceServer, bodies: list[dict[str, Any]]) -> None:
    ana, ben = workspace.people["ana"], workspace.people["ben"]
    said = await ana.say("docs", "card")
    await ben.react("docs", said.ts, ":x:")
    await ben.unreact("docs", said.ts, "x")
    await workspace.deliveries.settled()
    added, removed = (body["event"] for body in bodies[1:])
    item = {"type": "message", "channel": "C0DOCS001", "ts": said.ts}
    for event, kind in ((added, "reaction_added"), (removed, "reaction_removed")):
        assert (event["type"], event["user"], event["reaction"]) == (kind, ben.id, "x")
        assert (event["item"], event["item_user"]) == (item, ana.id)
        assert event["event_ts"] > said.ts


async def test_a_message_is_forwarded_into_a_thread(workspace: WorkspaceServer, bodies: list[dict[str, Any]]) -> None:
    """Without text, or with a mention, whose event also has the attachment."""
    ana, ben = workspace.people["ana"], workspace.people["ben"]
    original = await ben.say("general", "The *install* page is wrong", files=["shot.png"])
    root = await ana.say("docs", "root")
    await ana.forward("general", original.ts, "docs", thread_ts=root.ts)
    await ana.forward("general", original.ts, "docs", thread_ts=root.ts, text="@pagehand see this")
    await workspace.deliveries.settled()
    _, bare, worded, mention = (body["event"] for body in bodies)
    assert (bare["text"], bare["thread_ts"], "subtype" in bare) == ("", root.ts, False)
    (attachment,) = bare["attachments"]
    assert (attachment["is_share"], attachment["is_msg_unfurl"]) == (True, True)
    assert (attachment["text"], attachment["author_id"]) == ("The *install* page is wrong", ben.id)
    assert (attachment["channel_id"], attachment["ts"]) == ("C0GENERAL", original.ts)
    assert attachment["from_url"] == f"{workspace.origin}/archives/C0GENERAL/p{original.ts.replace('.', '')}"
    assert attachment["message_blocks"][0]["message"]["blocks"][0]["type"] == "rich_text"
    assert attachment["files"][0]["name"] == "shot.png"
    assert worded["text"] == f"<@{workspace.app.bot_user_id}> see this"
    assert (mention["type"], mention["attachments"]) == ("app_mention", worded["attachments"])


async def test_people_cannot_forward_what_they_cannot_see(workspace: WorkspaceServer) -> None:
    secret = await workspace.people["ana"].say("leads", "secret")
    with pytest.raises(SlackError, match="channel_not_found"):
        await workspace.people["gia"].forward("leads", secret.ts, "docs")
