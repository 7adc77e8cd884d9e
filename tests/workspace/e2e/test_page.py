"""The workspace's page in a real browser, against the real workspace server."""

import asyncio
import re
from contextlib import suppress
from typing import Any

import pytest
from playwright.async_api import Page, expect
from playwright.async_api import TimeoutError as PlaywrightTimeoutError
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.browser_page import ANA, BEN, DOCS, GENERAL, GIA, LEADS, WorkspaceTabs, messages, replies, write
from support.worlds.modal_samples import option, plain

from bot.workspace import WorkspaceServer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.full
async def test_commands_are_completed_and_unknown_ones_rejected(tabs: WorkspaceTabs) -> None:
    page = await tabs.open(ANA, DOCS)
    composer, suggestions = page.get_by_test_id("composer"), page.get_by_test_id("suggestions").first
    await composer.press_sequentially("/")
    await expect(suggestions.get_by_role("option")).to_have_count(2)
    await expect(suggestions).to_contain_text("what to do")
    await composer.press("ArrowDown")
    await expect(suggestions.locator('[aria-selected="true"]')).to_contain_text("/invite")
    await composer.press("ArrowUp")
    await composer.press("Enter")
    await expect(composer).to_have_value("/docs ")
    await expect(suggestions).to_be_hidden()
    await write(page, "/nonsense here")
    await expect(page.get_by_test_id("composer-problem").first).to_contain_text("/nonsense")
    await expect(composer).to_have_value("/nonsense here")


@pytest.mark.full
async def test_a_missing_bot_is_reported(tabs: WorkspaceTabs, workspace: FaultyWorkspace) -> None:
    page = await tabs.open(ANA, DOCS)
    await expect(page.get_by_test_id("banner")).to_contain_text("No bot is connected")


@pytest.mark.full
async def test_a_thread_has_its_own_pane_and_address(tabs: WorkspaceTabs, workspace: FaultyWorkspace) -> None:
    first = await workspace.people["ben"].say("docs", "Shall we?")
    page = await tabs.open(ANA, DOCS)
    await messages(page).first.hover()
    await page.get_by_role("button", name="Reply in thread").click()
    await write(page, "In the thread", "thread-composer")
    await expect(replies(page)).to_have_count(2)
    await page.get_by_label("Also send to #docs").check()
    await write(page, "For everyone", "thread-composer")
    await expect(messages(page)).to_have_count(2)
    await expect(messages(page).last).to_contain_text("replied to a thread: Shall we?")
    await expect(messages(page).first.get_by_test_id("open-thread")).to_contain_text("2 replies")
    assert f"thread={first.ts}" in page.url
    await page.reload()
    await expect(replies(page)).to_have_count(3)
    await page.keyboard.press("Escape")
    await expect(page.get_by_test_id("thread")).to_be_hidden()
    assert [m.subtype for m in workspace.channels.thread("docs", first.ts)] == [None, None, "thread_broadcast"]


@pytest.mark.full
async def test_messages_written_quickly_keep_their_order(tabs: WorkspaceTabs, workspace: FaultyWorkspace) -> None:
    page = await tabs.open(ANA, DOCS)
    texts = [f"Line {number}" for number in range(12)]
    for text in texts:
        await write(page, text)
    await page.locator(f'[data-channel="{LEADS}"]').click()
    await workspace.changes.wait_for(lambda: len(workspace.channels.messages("docs")) == len(texts))
    assert [message.text for message in workspace.channels.messages("docs")] == texts


@pytest.mark.full
async def test_joining_and_inviting(tabs: WorkspaceTabs, workspace: FaultyWorkspace) -> None:
    gia = await tabs.open(GIA)
    await expect(gia.get_by_test_id("channel").locator(".conversation-name")).to_have_text(["docs", "Pagehand"])
    workspace.state.leave(workspace.channels["general"], ANA)
    page = await tabs.open(ANA, GENERAL)
    await expect(page.get_by_test_id("composer")).to_be_hidden()
    await page.get_by_test_id("join-channel").click()
    await page.get_by_test_id("invite-bot").click()
    await expect(page.get_by_test_id("invite-bot")).to_be_hidden()
    await expect(page.get_by_test_id("composer")).to_be_visible()
    assert {ANA, workspace.app.bot_user_id} <= set(workspace.channels["general"].members)


async def test_the_page_works_by_keyboard(tabs: WorkspaceTabs, workspace: FaultyWorkspace) -> None:
    """Even if the browser is too busy to draw a frame, each key goes where the previous one led."""
    await tabs.context.add_init_script("window.requestAnimationFrame = () => 0")
    await workspace.people["ana"].say("docs", "One")
    await workspace.people["ben"].say("docs", "Two")
    page = await tabs.open(ANA, DOCS)
    await expect(messages(page)).to_have_count(2)
    await page.locator("body").press("Tab")
    await expect(page.get_by_role("button", name="Skip to the message box")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("composer")).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await expect(page.get_by_label("Edit message")).to_have_value("One")
    await page.keyboard.press("Escape")
    await expect(messages(page).first).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(messages(page).last).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="React with :white_check_mark:")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(messages(page).last.get_by_test_id("reaction")).to_have_attribute("aria-pressed", "true")
    await messages(page).last.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("thread-composer")).to_be_focused()
    await page.keyboard.press("Escape")
    await _act_as_ben(page)


async def _act_as_ben(page: Page) -> None:
    """Uses the keyboard, and tries again if the list was not open yet, since nothing shows when it is."""
    is_ben = page.locator(f"[data-ready={BEN}]")
    for _ in range(5):
        await page.get_by_test_id("act-as").focus()
        for key in ("Enter", "ArrowDown", "Enter"):
            await page.keyboard.press(key)
        with suppress(PlaywrightTimeoutError):
            await is_ben.wait_for(state="attached", timeout=2_000)
            return
    await expect(is_ben).to_be_attached()


@pytest.mark.full
async def test_an_unread_channel_is_marked_until_it_is_read(tabs: WorkspaceTabs, workspace: FaultyWorkspace) -> None:
    page = await tabs.open(ANA, DOCS)
    general = page.locator(f'[data-channel="{GENERAL}"]')
    await workspace.people["ben"].say("general", "Quiet news")
    await expect(general).to_have_class(re.compile("unread"))
    await workspace.people["ben"].say("general", "@ana look")
    await expect(general.locator(".calls")).to_have_text("1 for you")
    await general.click()
    await expect(page.locator(".divider-row.new")).to_be_visible()
    await expect(general).not_to_have_class(re.compile("unread"))


async def test_a_lost_server_is_reported_and_nothing_typed_is_lost(
    tabs: WorkspaceTabs, workspace: FaultyWorkspace
) -> None:
    page = await tabs.open(ANA, DOCS)
    await workspace.begin_outage()
    await expect(page.get_by_test_id("banner")).to_contain_text("cannot be reached")
    await write(page, "Keep me")
    await expect(page.get_by_test_id("composer")).to_have_value("Keep me")
    await expect(page.get_by_test_id("composer-problem").first).to_be_visible()
    await workspace.people["ben"].say("docs", "Written meanwhile")
    await workspace.end_outage()
    await expect(messages(page).last).to_contain_text("Written meanwhile", timeout=30_000)
    await expect(page.get_by_test_id("banner")).not_to_contain_text("cannot be reached")
    tabs.faults[:] = [fault for fault in tabs.faults if "net::ERR_" not in fault]  # the browser's own words for it


Json = dict[str, Any]


@pytest.mark.full
async def test_reactions_are_added_and_removed_with_any_emoji(tabs: WorkspaceTabs, workspace: WorkspaceServer) -> None:
    """`:x:` with one click, others by name."""
    said = await workspace.people["ben"].say("docs", "Shall we?")
    await workspace.people["ben"].react("docs", said.ts, "x")
    page = await tabs.open(ANA, DOCS)
    row = messages(page).last
    await row.hover()
    await row.get_by_role("button", name="React with :x:").click()
    chip = row.get_by_test_id("reaction")
    await expect(chip.locator(".count")).to_have_text("2")
    await expect(chip).to_have_attribute("aria-pressed", "true")
    await chip.click()
    await expect(chip.locator(".count")).to_have_text("1")
    await expect(chip).to_have_accessible_description("Ben Okafor reacted with :x:")
    await row.get_by_role("button", name="Add a reaction").click()
    await page.get_by_label("Emoji by name").fill(":Shipit:")
    await page.keyboard.press("Enter")
    await expect(row.locator('[data-name="shipit"]')).to_contain_text(":shipit:")
    await row.get_by_role("button", name="Add a reaction").click()
    await page.get_by_label("Emoji by name").fill("not an emoji")
    await page.get_by_role("button", name="React", exact=True).click()
    await expect(page.get_by_test_id("toast")).to_contain_text("name cannot be used")
    assert workspace.channels.messages("docs")[-1].reactions == {"x": [BEN], "shipit": [ANA]}


CONFIRM = {
    "title": plain("Mute it?"),
    "text": plain("Only failures are told."),
    "confirm": plain("Yes, mute"),
    "deny": plain("No"),
}
CARD: list[Json] = [
    {
        "type": "section",
        "block_id": "card",
        "text": {"type": "mrkdwn", "text": "*Working* since <!date^1700000000^{date_short} {time}|then>"},
        "accessory": {
            "type": "overflow",
            "action_id": "menu",
            "options": [option("The whole request", "request"), option("Mute", "mute")],
        },
    },
    {
        "type": "actions",
        "block_id": "choose",
        "elements": [
            {
                "type": "static_select",
                "action_id": "project",
                "placeholder": plain("Project"),
                "options": [option("Guide", "guide"), option("Handbook", "book")],
                "confirm": CONFIRM,
            }
        ],
    },
    {"type": "context", "elements": [{"type": "mrkdwn", "text": "2 follow-ups sent"}]},
]


@pytest.mark.full
async def test_the_elements_of_a_card(tabs: WorkspaceTabs, app: AsyncApp, slack: AsyncWebClient) -> None:
    """An overflow menu, and a menu with a confirmation dialog, tell the app what was chosen. Times are local."""
    heard: asyncio.Queue[Json] = asyncio.Queue()

    @app.action(re.compile("menu|project"))
    async def chosen(ack: Any, body: Json) -> None:
        await ack()
        heard.put_nowait(body["actions"][0])

    await slack.chat_postMessage(channel=DOCS, text="card", blocks=CARD)
    page = await tabs.open(ANA, DOCS)
    row = messages(page).last
    await expect(row.locator("time").last).to_have_text("Nov 14, 2023 10:13 PM")
    await row.get_by_role("button", name="More options").click()
    await page.get_by_role("menuitem", name="Mute").click()
    action = await asyncio.wait_for(heard.get(), 10)
    assert (action["type"], action["selected_option"]["value"]) == ("overflow", "mute")
    choice = row.get_by_label("Project")
    await choice.select_option(label="Handbook")
    await page.get_by_role("button", name="No", exact=True).click()
    assert await choice.evaluate("(node) => node.selectedOptions[0].label") == "Project"
    await choice.select_option(label="Guide")
    await page.get_by_role("button", name="Yes, mute").click()
    action = await asyncio.wait_for(heard.get(), 10)
    assert (action["block_id"], action["selected_option"]["value"]) == ("choose", "guide")
