"""The workspace's Web API, called with slack_sdk, as Pagehand does: messages, people, channels, and their scopes."""

from typing import Any

import pytest
from aiohttp import ClientSession
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.workspace_world import error

DOCS, GENERAL, LEADS = "C0DOCS001", "C0GENERAL", "C0LEADS01"
METADATA = {"event_type": "pagehand", "event_payload": {"key": "k1"}}


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


async def test_where_the_bot_may_not_post(workspace: FaultyWorkspace, client: AsyncWebClient) -> None:
    assert await error(client.chat_postMessage(channel=GENERAL, text="x")) == "not_in_channel"
    assert await error(client.chat_postMessage(channel=LEADS, text="x")) == "channel_not_found"
    assert await error(client.chat_postMessage(channel="C404", text="x")) == "channel_not_found"
    workspace.channels.archive("docs")
    assert await error(client.chat_postMessage(channel=DOCS, text="x")) == "is_archived"
    workspace.channels.unarchive("docs")
    workspace.channels.remove_bot("docs")
    assert await error(client.chat_postMessage(channel=DOCS, text="x")) == "not_in_channel"


async def test_long_texts_are_cut_and_long_updates_refused(client: AsyncWebClient) -> None:
    answer = await client.chat_postMessage(channel=DOCS, text="x" * 41_000)
    assert len(answer["message"]["text"]) == 40_000
    assert await error(client.chat_update(channel=DOCS, ts=answer["ts"], text="x" * 4_001)) == "msg_too_long"
    assert await error(client.chat_postMessage(channel=DOCS, markdown_text="x")) == "no_text"


async def test_blocks_that_are_too_long_together(client: AsyncWebClient) -> None:
    blocks = [section("x" * 3000)] * 5
    assert await error(client.chat_postMessage(channel=DOCS, text="x", blocks=blocks)) == "msg_blocks_too_long"
    assert await error(client.chat_postMessage(channel=DOCS, text="x", blocks="{}")) == "invalid_blocks_format"


async def test_threads(workspace: FaultyWorkspace, client: AsyncWebClient) -> None:
    root = (await client.chat_postMessage(channel=DOCS, text="root"))["ts"]
    reply = (await client.chat_postMessage(channel=DOCS, text="r1", thread_ts=root))["ts"]
    deeper = await client.chat_postMessage(channel=DOCS, text="r2", thread_ts=reply, reply_broadcast=True)
    assert deeper["message"]["thread_ts"] == root
    assert [m.text for m in workspace.channels.thread("docs", root)] == ["root", "r1", "r2"]
    in_channel = (await client.conversations_history(channel=DOCS))["messages"]
    assert [m["text"] for m in in_channel] == ["r2", "root"]
    assert in_channel[1]["reply_count"] == 2
    assert await error(client.chat_postMessage(channel=DOCS, text="x", thread_ts="1.000001")) == "thread_not_found"
    assert await error(client.chat_postMessage(channel=DOCS, text="x", thread_ts="soon")) == "invalid_thread_ts"
    assert await error(client.conversations_replies(channel=DOCS, ts="1.000001")) == "thread_not_found"


async def test_an_update_with_text_alone_removes_the_blocks_and_keeps_the_metadata(client: AsyncWebClient) -> None:
    posted = await client.chat_postMessage(channel=DOCS, text="t", blocks=[section("b")], metadata=METADATA)
    ts = posted["ts"]
    answer = await client.chat_update(channel=DOCS, ts=ts, text="new")
    assert answer["text"] == "new"
    assert "blocks" not in answer["message"]
    kept = (await client.conversations_replies(channel=DOCS, ts=ts, include_all_metadata=True))["messages"][0]
    assert kept["metadata"] == METADATA
    assert "metadata" not in (await client.conversations_replies(channel=DOCS, ts=ts))["messages"][0]


async def test_an_app_changes_only_its_own_messages(workspace: FaultyWorkspace, client: AsyncWebClient) -> None:
    posted = await client.chat_postMessage(channel=DOCS, text="t")
    said = await workspace.people["ana"].say("docs", "mine")
    assert (await client.chat_delete(channel=DOCS, ts=posted["ts"]))["ts"] == posted["ts"]
    assert [message.ts for message in workspace.channels.messages("docs")] == [said.ts]
    assert await error(client.chat_delete(channel=DOCS, ts=posted["ts"])) == "message_not_found"
    assert await error(client.chat_delete(channel=DOCS, ts=said.ts)) == "cant_delete_message"
    assert await error(client.chat_update(channel=DOCS, ts=said.ts, text="x")) == "cant_update_message"
    assert await error(client.chat_update(channel=DOCS, ts="1.000001", text="x")) == "message_not_found"


async def test_ephemerals_show_only_in_threads_with_replies(workspace: FaultyWorkspace, client: AsyncWebClient) -> None:
    """Elsewhere the call succeeds, and nobody sees the message."""
    ana = workspace.people["ana"]
    root = await ana.say("docs", "hi")
    for words in ("before", "after"):
        await client.chat_postEphemeral(channel=DOCS, user=ana.id, text=words, thread_ts=root.ts)
        await ana.say("docs", "reply", thread_ts=root.ts)
    assert [(m.text, m.thread_ts) for m in ana.ephemerals("docs")] == [("after", root.ts)]


async def test_history_in_pages_and_windows(client: AsyncWebClient) -> None:
    stamps = [(await client.chat_postMessage(channel=DOCS, text=str(n)))["ts"] for n in range(7)]
    page = await client.conversations_history(channel=DOCS, limit=3)
    texts = [m["text"] for m in page["messages"]]
    while page["has_more"]:
        cursor = page["response_metadata"]["next_cursor"]
        page = await client.conversations_history(channel=DOCS, limit=3, cursor=cursor)
        texts += [m["text"] for m in page["messages"]]
    assert texts == ["6", "5", "4", "3", "2", "1", "0"]
    assert await error(client.conversations_history(channel=DOCS, cursor="rubbish")) == "invalid_cursor"

    async def window(**span: Any) -> list[str]:
        return [m["text"] for m in (await client.conversations_history(channel=DOCS, **span))["messages"]]

    assert await window(oldest=stamps[2], latest=stamps[4]) == ["3"]
    assert await window(oldest=stamps[2], latest=stamps[4], inclusive=True) == ["4", "3", "2"]
    assert await window(oldest=stamps[5]) == ["6"]


async def test_replies_in_pages_each_with_the_first_message(client: AsyncWebClient) -> None:
    root = (await client.chat_postMessage(channel=DOCS, text="root"))["ts"]
    for number in range(5):
        await client.chat_postMessage(channel=DOCS, text=str(number), thread_ts=root)
    page = await client.conversations_replies(channel=DOCS, ts=root, limit=3)
    pages = [[m["text"] for m in page["messages"]]]
    while page["has_more"]:
        cursor = page["response_metadata"]["next_cursor"]
        page = await client.conversations_replies(channel=DOCS, ts=root, limit=3, cursor=cursor)
        pages.append([m["text"] for m in page["messages"]])
    assert pages == [["root", "0", "1"], ["root", "2", "3"], ["root", "4"]]


PNG = b"\x89PNG\r\n\x1a\n"


def image(file_id: str) -> list[dict[str, Any]]:
    return [{"type": "image", "slack_file": {"id": file_id}, "alt_text": "a"}]


async def uploaded(client: AsyncWebClient, content: bytes, name: str = "x.png") -> str:
    """Uploads a file for nobody yet, and returns its id."""
    return str((await client.files_upload_v2(content=content, filename=name))["file"]["id"])


async def test_an_uploaded_picture_can_be_shown_once_slack_knows_its_type(
    workspace: FaultyWorkspace, client: AsyncWebClient
) -> None:
    workspace.state.files.seconds_to_know = 1e9
    file_id = await uploaded(client, PNG)
    assert (await client.files_info(file=file_id))["file"]["mimetype"] == ""
    with pytest.raises(SlackApiError) as refused:
        await client.chat_postMessage(channel=DOCS, text="x", blocks=image(file_id))
    assert refused.value.response["errors"] == ["invalid slack file [json-pointer:/blocks/0/slack_file]"]
    workspace.state.files.seconds_to_know = 0
    known = await uploaded(client, PNG)
    told = (await client.files_info(file=known))["file"]
    assert (told["mimetype"], told["name"], told["channels"]) == ("image/png", "x.png", [])
    posted = await client.chat_postMessage(channel=DOCS, text="x", blocks=image(known))
    assert posted["message"]["blocks"][0]["slack_file"] == {"id": known}


async def test_what_is_no_picture_of_the_app_is_not_shown(workspace: FaultyWorkspace, client: AsyncWebClient) -> None:
    workspace.state.files.seconds_to_know = 0
    said = await workspace.people["ana"].say("docs", "", files=["theirs.png"])
    assert said.files
    for file_id in (await uploaded(client, b"<html>"), said.files[0].id, "F0123456789"):
        assert await error(client.chat_postMessage(channel=DOCS, text="x", blocks=image(file_id))) == "invalid_blocks"


async def test_an_upload_that_does_not_come_as_told_is_no_file(
    workspace: FaultyWorkspace, client: AsyncWebClient
) -> None:
    assert await error(client.files_getUploadURLExternal(filename="x.png", length=0)) == "missing_argument"
    too_large = client.files_getUploadURLExternal(filename="x.png", length=1 << 30)
    assert await error(too_large) == "file_upload_size_restricted"
    told = await client.files_getUploadURLExternal(filename="x.png", length=3)
    for address, content in ((told["upload_url"], b"four"), (told["upload_url"] + "0", b"abc")):
        async with ClientSession() as session, session.post(address, data=content) as answer:
            assert answer.status == 400
    complete = [{"id": told["file_id"]}]
    assert await error(client.files_completeUploadExternal(files=complete)) == "file_not_found"
    file_id = await uploaded(client, PNG)
    assert await error(client.files_completeUploadExternal(files=[{"id": file_id}])) == "file_not_found"
    workspace.credentials.remove_scopes("files:write")
    assert await error(client.files_getUploadURLExternal(filename="x.png", length=3)) == "missing_scope"
