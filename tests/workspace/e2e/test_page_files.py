"""Files on the workspace's page: chosen, sent, shown and downloaded."""

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.browser_page import ANA, BEN, DOCS, WorkspaceTabs, messages
from support.worlds.workspace_world import client_of

from bot.workspace.model.entities import MAX_FILE_BYTES, Upload

pytestmark = [pytest.mark.full, pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


def payload(name: str, content: bytes = b"text", mimetype: str = "text/plain") -> Any:
    return {"name": name, "mimeType": mimetype, "buffer": content}


def png() -> bytes:
    """Returns a picture with one red pixel."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0\xff\0\0")), (b"IEND", b"")]
    parts = (struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


async def choose(page: Page, *files: Any) -> None:
    await page.get_by_test_id("file-chooser").first.set_input_files([*files])


async def test_files_are_sent_shown_and_downloaded(
    tabs: WorkspaceTabs, workspace: FaultyWorkspace, tmp_path: Path
) -> None:
    """Pictures as they are, other files with name and size. Hostile names stay text."""
    page = await tabs.open(ANA, DOCS)
    hostile = '<img src=x onerror=alert(1)> "a".html'
    await choose(page, payload(hostile, b"<script>alert(1)</script>", "text/html"), payload("taken out.txt"))
    await choose(page, payload("point.png", png(), "image/png"))
    await page.get_by_role("button", name="Remove taken out.txt").click()
    await expect(page.get_by_test_id("attached").first.locator(".file")).to_have_count(2)
    await page.get_by_test_id("composer").fill("Have a look")
    await page.get_by_test_id("composer").press("Enter")
    row = messages(page).last
    await expect(row).to_contain_text("Have a look")
    await expect(row.locator(".file-words")).to_have_text([f"{hostile}25 bytes", "point.png69 bytes"])
    await expect(row.locator("img.thumbnail")).to_have_js_property("naturalWidth", 1)
    await expect(row.locator("[onerror], script")).to_have_count(0)
    await expect(page.get_by_test_id("attached").first).to_be_hidden()
    async with page.expect_download() as started:
        await row.locator(".file-name").first.click()
    download = await started.value
    await download.save_as(tmp_path / "kept")
    assert (tmp_path / "kept").read_bytes() == b"<script>alert(1)</script>"
    kept = workspace.channels.messages("docs")[-1].files
    assert kept is not None
    assert [(file.name, file.mimetype) for file in kept] == [(hostile, "text/html"), ("point.png", "image/png")]
    await row.hover()
    await row.get_by_role("button", name="Delete message").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(messages(page)).to_have_count(0)


async def test_files_that_cannot_be_attached_are_reported(tabs: WorkspaceTabs, workspace: FaultyWorkspace) -> None:
    """Too large, too many, or with a command: there is always a message, and the other files stay."""
    page = await tabs.open(ANA, DOCS)
    problem, attached = page.get_by_test_id("composer-problem").first, page.get_by_test_id("attached").first
    await choose(page, payload("large.bin", bytes(MAX_FILE_BYTES + 1)))
    await expect(problem).to_contain_text("“large.bin” is larger than")
    await expect(attached).to_be_hidden()
    await choose(page, *(payload(f"{number}.txt") for number in range(11)))
    await expect(problem).to_contain_text("10 files at most")
    await expect(attached.locator(".file")).to_have_count(10)
    await page.get_by_test_id("composer").fill("/docs fix it")
    await page.get_by_test_id("composer").press("Enter")
    await expect(problem).to_contain_text("A command cannot carry files")
    await expect(page.get_by_test_id("composer")).to_have_value("/docs fix it")
    assert workspace.channels.messages("docs") == []


async def test_a_file_in_a_hidden_channel_cannot_be_downloaded(tabs: WorkspaceTabs, workspace: FaultyWorkspace) -> None:
    """Not even with its URL. After sharing the message it can."""
    said = await workspace.people["ben"].say("leads", "Private", files=[Upload("plan.txt", b"secret")])
    assert said.files is not None
    address = f"{tabs.origin}/page/files/{said.files[0].id}"
    page = await tabs.open(ANA, DOCS)
    ask = "async (url) => { const answer = await fetch(url); return [answer.status, await answer.text()]; }"
    assert await page.evaluate(ask, f"{address}?as={BEN}") == [200, "secret"]
    assert (await page.evaluate(ask, f"{address}?as=U0GIA0001"))[0] == 404
    await workspace.people["ben"].forward("leads", said.ts, "docs")
    assert await page.evaluate(ask, f"{address}?as=U0GIA0001") == [200, "secret"]
    await expect(messages(page).last.get_by_test_id("attachment").locator(".file-name")).to_have_text("plan.txt")
    tabs.faults[:] = [fault for fault in tabs.faults if "404" not in fault]  # the browser's words for what is not there


async def test_a_picture_in_a_block_is_shown_with_its_words(tabs: WorkspaceTabs, workspace: FaultyWorkspace) -> None:
    workspace.state.files.seconds_to_know = 0
    client = client_of(workspace)
    hostile = '"><img src=x onerror=alert(1)>'
    file_id = (await client.files_upload_v2(content=png(), filename="x.png"))["file"]["id"]
    title = {"type": "plain_text", "text": f"docs/{hostile}"}
    block = {"type": "image", "slack_file": {"id": file_id}, "alt_text": hostile, "title": title}
    await client.chat_postMessage(channel=workspace.channels["docs"].id, text="x", blocks=[block])
    page = await tabs.open(ANA, DOCS)
    shown = messages(page).last.get_by_role("img", name=hostile)
    await expect(shown).to_have_js_property("naturalWidth", 1)
    await expect(messages(page).last.locator("figcaption")).to_have_text(f"docs/{hostile}")
    await expect(messages(page).last.locator("[onerror]")).to_have_count(0)
