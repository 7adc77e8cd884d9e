"""Files: what the app learns about them, who may read them, and what is left after their deletion."""

from dataclasses import replace
from typing import Any

import pytest
from aiohttp import ClientSession
from support.worlds.workspace_world import client_of, error, running

from bot.workspace import AppConfig, SlackError, WorkspaceServer
from bot.workspace.model.app_config import DEFAULT_SCOPES
from bot.workspace.model.files import MAX_FILE_BYTES, MAX_FILES, Upload

NOTES = Upload("notes.md", b"# Notes\n\nfirst\nsecond\nthird\nfourth\n")
PICTURE = Upload("a <b>.png", b"\x89PNG\r\n", "image/png")


async def fetched(url: str, token: str | None) -> tuple[int, str, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, answer.content_type, await answer.read()


async def test_a_message_describes_its_files(workspace: WorkspaceServer, bodies: list[dict[str, Any]]) -> None:
    said = await workspace.people["ana"].say("docs", "See these", files=[NOTES, PICTURE])
    await workspace.deliveries.settled()
    (event,) = (body["event"] for body in bodies)
    assert (event["type"], event["subtype"], event["ts"], event["upload"]) == ("message", "file_share", said.ts, False)
    notes, picture = event["files"]
    assert (notes["mode"], notes["mimetype"], notes["size"]) == ("hosted", "text/markdown", len(NOTES.content))
    assert picture["name"] == "a <b>.png"
    for file in event["files"]:
        assert file["url_private"].startswith(f"{workspace.origin}/files-pri/T0LOCAL01-{file['id']}/")
        assert "/download/" in file["url_private_download"]
        assert file["permalink"].startswith(f"{workspace.origin}/files/{file['user']}/{file['id']}/")


async def test_the_bot_token_reads_a_file_byte_for_byte(workspace: WorkspaceServer) -> None:
    said = await workspace.people["ana"].say("docs", "", files=[NOTES, PICTURE])
    for file, upload in zip(said.files or (), (NOTES, PICTURE), strict=True):
        info = (await client_of(workspace).files_info(file=file.id))["file"]
        assert (info["channels"], info["groups"], info["is_public"]) == (["C0DOCS001"], [], True)
        for url in (info["url_private"], info["url_private_download"]):
            found = await fetched(url, workspace.credentials.bot_token)
            assert found == (200, info["mimetype"], upload.content)


async def test_without_the_right_token_there_is_a_sign_in_page(workspace: WorkspaceServer) -> None:
    said = await workspace.people["ana"].say("docs", "", files=[NOTES])
    assert said.files
    url = (await client_of(workspace).files_info(file=said.files[0].id))["file"]["url_private_download"]
    for token in (None, "xoxb-wrong", workspace.credentials.app_token):
        status, kind, body = await fetched(url, token)
        assert (status, kind) == (200, "text/html")
        assert NOTES.content not in body


async def test_files_cannot_be_read_without_the_scope() -> None:
    """As in Slack, the message still names the file."""
    async with running(replace(AppConfig(), scopes=DEFAULT_SCOPES - {"files:read"})) as workspace:
        said = await workspace.people["ana"].say("docs", "", files=[NOTES])
        client = client_of(workspace)
        history = await client.conversations_history(channel="C0DOCS001")
        (file,) = history["messages"][0]["files"]
        assert await error(client.files_info(file=file["id"])) == "missing_scope"
        status, kind, _ = await fetched(file["url_private_download"], workspace.credentials.bot_token)
        assert (status, kind) == (200, "text/html")
        assert said.ts == history["messages"][0]["ts"]


async def test_files_in_channels_without_the_bot_are_not_found(workspace: WorkspaceServer) -> None:
    said = await workspace.people["ana"].say("leads", "", files=[NOTES])
    assert said.files
    assert await error(client_of(workspace).files_info(file=said.files[0].id)) == "file_not_found"
    url = f"{workspace.origin}/files-pri/T0LOCAL01-{said.files[0].id}/notes.md"
    assert (await fetched(url, workspace.credentials.bot_token))[0] == 404


async def test_in_a_shared_channel_the_app_has_to_ask_for_the_file(
    workspace: WorkspaceServer, bodies: list[dict[str, Any]]
) -> None:
    said = await workspace.people["emil"].say("partners", "ours", files=[NOTES])
    await workspace.deliveries.settled()
    assert said.files
    (event,) = (body["event"] for body in bodies)
    assert event["files"] == [
        {
            "id": said.files[0].id,
            "mode": "file_access",
            "file_access": "check_file_info",
            "created": 0,
            "timestamp": 0,
            "user": "",
        }
    ]
    info = (await client_of(workspace).files_info(file=said.files[0].id))["file"]
    assert (info["name"], info["user_team"]) == ("notes.md", "T0PARTNER")


async def test_files_have_limits(workspace: WorkspaceServer) -> None:
    ana = workspace.people["ana"]
    with pytest.raises(SlackError, match="file_too_large"):
        await ana.say("docs", "", files=[Upload("big.bin", bytes(MAX_FILE_BYTES + 1))])
    with pytest.raises(SlackError, match="too_many_files"):
        await ana.say("docs", "", files=["a.txt"] * (MAX_FILES + 1))
    with pytest.raises(SlackError, match="invalid_name"):
        await ana.say("docs", "", files=[""])
    assert workspace.channels.messages("docs") == []


async def test_an_uploaded_page_cannot_run_in_the_workspace(workspace: WorkspaceServer) -> None:
    """It would have the same origin as the workspace's own page."""
    said = await workspace.people["ana"].say("docs", "", files=[Upload("x.html", b"<script>alert(1)</script>")])
    assert said.files
    url = (await client_of(workspace).files_info(file=said.files[0].id))["file"]["url_private"]
    headers = {"Authorization": f"Bearer {workspace.credentials.bot_token}"}
    async with ClientSession() as session, session.get(url, headers=headers) as answer:
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
