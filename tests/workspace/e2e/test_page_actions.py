"""What people do with messages on the workspace's page: shortcuts, reactions, sharing, and an app's elements."""

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import expect
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from support.worlds.browser_page import ANA, BEN, DOCS, LEADS, WorkspaceTabs, messages, replies
from support.worlds.modal_samples import option, plain

from bot.workspace import WorkspaceServer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

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


@pytest.mark.full
async def test_a_message_is_shared_into_a_thread(tabs: WorkspaceTabs, workspace: WorkspaceServer) -> None:
    """It shows the author, and the origin to those who may see it."""
    await workspace.people["ben"].say("leads", "The <plan> is *ready*")
    root = await workspace.people["ben"].say("docs", "What of the plan?")
    page = await tabs.open(ANA, LEADS)
    await page.goto(f"{tabs.origin}/#as={ANA}&channel={DOCS}&thread={root.ts}")
    await page.goto(f"{tabs.origin}/#as={ANA}&channel={LEADS}")
    await messages(page).last.hover()
    await page.get_by_role("button", name="Share message").click()
    await page.get_by_label("Share to").select_option(label="#docs")
    await page.get_by_label("Say something").fill("Look, @ben")
    await page.get_by_role("button", name="Share", exact=True).click()
    await page.locator(f'[data-channel="{DOCS}"]').click()
    shared = messages(page).last
    await expect(shared.locator(".mention")).to_have_text("@ben")
    await expect(shared.get_by_test_id("attachment")).to_contain_text("Ben OkaforThe <plan> is ready")
    await expect(shared.get_by_role("link", name="View message")).to_have_attribute("href", re.compile(LEADS))

    await page.goto(f"{tabs.origin}/#as={ANA}&channel={DOCS}&thread={root.ts}")
    await messages(page).last.hover()
    await messages(page).last.get_by_role("button", name="Share message").click()
    await expect(page.get_by_label("Share to")).to_have_value("0")
    await page.get_by_role("button", name="Share", exact=True).click()
    await expect(replies(page).last.get_by_test_id("attachment")).to_contain_text("Look, @ben")
    assert [m.thread_ts for m in workspace.channels.messages("docs")][-1] == root.ts

    gia = await tabs.open("U0GIA0001", DOCS)
    await expect(messages(gia).last.get_by_test_id("attachment")).to_contain_text("From a conversation")
    await expect(messages(gia).last.get_by_role("link", name="View message")).to_have_count(0)


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
