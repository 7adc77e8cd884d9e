"""A workspace stored in a directory is the same after a restart."""

from pathlib import Path

from slack_sdk.web.async_client import AsyncWebClient

from bot.workspace import WorkspaceServer

METADATA = {"event_type": "pagehand", "event_payload": {"key": "k"}}


async def test_a_stored_workspace_has_its_messages_again(tmp_path: Path) -> None:
    first = WorkspaceServer(directory=tmp_path)
    await first.start()
    client = AsyncWebClient(token=first.credentials.bot_token, base_url=first.api_url)
    root = (await client.chat_postMessage(channel="C0DOCS001", text="card", metadata=METADATA))["ts"]
    ana = first.people["ana"]
    reply = await ana.say("docs", "reply \ud800 with half a character", thread_ts=root)
    await ana.say("docs", "second", thread_ts=root)
    await ana.edit("docs", reply.ts, "edited reply")
    await ana.react("docs", root, "eyes")
    gone = await ana.say("docs", "gone")
    await ana.delete("docs", gone.ts)
    await ana.invite("general", "@pagehand")
    first.channels.archive("partners")
    before = {name: first.channels.messages(name) for name in ("docs", "general")}
    await first.stop()

    second = WorkspaceServer(directory=tmp_path)
    assert {name: second.channels.messages(name) for name in ("docs", "general")} == before
    assert [m.text for m in second.channels.thread("docs", root)] == ["card", "edited reply", "second"]
    assert second.channels.thread("docs", root)[0].metadata == METADATA
    assert second.app.bot_user_id in second.channels["general"].members
    assert second.channels["partners"].is_archived
    later = await second.people["ana"].say("docs", "later")
    assert later.ts > before["docs"][-1].ts
    await second.stop()


async def test_the_apps_tokens_are_not_stored(tmp_path: Path) -> None:
    server = WorkspaceServer(directory=tmp_path)
    await server.people["ana"].say("docs", "x")
    await server.stop()
    kept = (tmp_path / "workspace.sqlite").read_bytes()
    assert b"ana" in kept
    for secret in (server.credentials.bot_token, server.credentials.app_token, server.credentials.signing_secret):
        assert secret.encode() not in kept
        assert secret not in repr(server.credentials)
