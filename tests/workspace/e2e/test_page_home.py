"""The app's Home tab and direct messages with it, on the workspace's page."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, expect
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from support.worlds.browser_page import ANA, EMIL, WorkspaceTabs, messages, replies, write
from support.worlds.modal_samples import PROMPT, input_block, modal, option, plain

from bot.workspace import WorkspaceServer

pytestmark = [pytest.mark.full, pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]


def home(*blocks: Json) -> Json:
    return {"type": "home", "blocks": [*blocks]}


def button(action_id: str, text: str) -> Json:
    return {"type": "button", "action_id": action_id, "value": "1", "text": plain(text)}


START = {"type": "actions", "block_id": "start", "elements": [button("begin", "Start a task")]}
JOB = {
    "type": "section",
    "block_id": "job",
    "text": {"type": "mrkdwn", "text": "*Fix the guide*"},
    "accessory": {"type": "overflow", "action_id": "job", "options": [option("Retry", "retry")]},
}
DEFAULTS = {
    "type": "actions",
    "block_id": "defaults",
    "elements": [
        {
            "type": "checkboxes",
            "action_id": "quiet",
            "options": [option("No mention at the end", "quiet"), option("Tell the channel", "tell")],
        }
    ],
}


async def open_app(page: Page) -> None:
    await page.get_by_test_id("channel").filter(has_text="Pagehand").click()


async def test_home_is_published_when_it_is_opened_and_updates_live(
    tabs: WorkspaceTabs, app: AsyncApp, slack: AsyncWebClient
) -> None:
    """The app hears when a tab is opened. An unpublished Home says so."""
    opened: asyncio.Queue[str] = asyncio.Queue()

    @app.event("app_home_opened")
    async def note(event: Json) -> None:
        opened.put_nowait(event["tab"])

    page = await tabs.open(ANA)
    await open_app(page)
    assert await asyncio.wait_for(opened.get(), 10) == "messages"
    await expect(page.get_by_test_id("tab-messages")).to_have_attribute("aria-selected", "true")
    await page.get_by_test_id("tab-home").click()
    assert await asyncio.wait_for(opened.get(), 10) == "home"
    shown = page.get_by_test_id("home")
    await expect(shown).to_contain_text("Pagehand has put nothing here yet")
    await expect(page.get_by_test_id("composer")).to_be_hidden()
    await slack.views_publish(user_id=ANA, view=home(JOB, START))
    await expect(shown.locator("strong")).to_have_text("Fix the guide")
    await slack.views_publish(user_id=ANA, view=home(START))
    await expect(shown.locator("strong")).to_have_count(0)
    await page.reload()
    await expect(page.get_by_test_id("home").get_by_role("button", name="Start a task")).to_be_visible()
    assert await asyncio.wait_for(opened.get(), 10) == "home"


@pytest.mark.full
async def test_the_tabs_by_keyboard(tabs: WorkspaceTabs, slack: AsyncWebClient) -> None:
    """Arrow keys move between tabs, and the Tab key leads into the content."""
    await slack.views_publish(user_id=ANA, view=home(START))
    page = await tabs.open(ANA)
    await open_app(page)
    await page.get_by_test_id("tab-messages").focus()
    await page.keyboard.press("ArrowLeft")
    await expect(page.get_by_test_id("tab-home")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("home")).to_be_visible()
    await page.get_by_test_id("tab-home").focus()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Start a task")).to_be_focused()


async def test_home_opens_modals_and_keeps_choices(tabs: WorkspaceTabs, app: AsyncApp, slack: AsyncWebClient) -> None:
    """A button opens a modal. Ticked boxes are in its payload and survive the next publishing."""
    heard: asyncio.Queue[Json] = asyncio.Queue()

    @app.action("begin")
    async def begin(ack: Any, body: Json, client: AsyncWebClient) -> None:
        await ack()
        heard.put_nowait(body)
        await client.views_open(trigger_id=body["trigger_id"], view=modal(PROMPT))

    @app.action("quiet")
    async def quiet(ack: Any, body: Json) -> None:
        await ack()
        heard.put_nowait(body)

    await slack.views_publish(user_id=ANA, view=home(DEFAULTS, START))
    page = await tabs.open(ANA)
    await open_app(page)
    await page.get_by_test_id("tab-home").click()
    await page.get_by_label("No mention at the end").check()
    action = (await asyncio.wait_for(heard.get(), 10))["actions"][0]
    assert [each["value"] for each in action["selected_options"]] == ["quiet"]
    await slack.views_publish(user_id=ANA, view=home(JOB, DEFAULTS, START))
    await expect(page.get_by_label("No mention at the end")).to_be_checked()
    await page.get_by_role("button", name="Start a task").click()
    body = await asyncio.wait_for(heard.get(), 10)
    assert body["view"]["state"]["values"]["defaults"]["quiet"]["selected_options"][0]["value"] == "quiet"
    await expect(page.get_by_test_id("modal").get_by_label("What to do")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Start a task")).to_be_focused()


@pytest.mark.full
async def test_an_unanswered_button_in_home_is_reported(tabs: WorkspaceTabs, slack: AsyncWebClient) -> None:
    """There is an error message beside it."""
    await slack.views_publish(user_id=ANA, view=home(START))
    page = await tabs.open(ANA)
    await open_app(page)
    await page.get_by_test_id("tab-home").click()
    await page.get_by_role("button", name="Start a task").click()
    await expect(page.get_by_test_id("home").get_by_role("alert")).to_contain_text("No app is connected")


async def test_direct_messages_and_their_threads(
    tabs: WorkspaceTabs, app: AsyncApp, workspace: WorkspaceServer
) -> None:
    """The app receives the messages and answers in a thread."""

    @app.event("message")
    async def answer(event: Json, client: AsyncWebClient) -> None:
        if not event.get("thread_ts") and not event.get("bot_id"):
            await client.chat_postMessage(channel=event["channel"], thread_ts=event["ts"], text=f"Got {event['text']}")

    page = await tabs.open(ANA)
    await open_app(page)
    await write(page, "fix the guide")
    await expect(messages(page)).to_have_count(1)
    await messages(page).first.get_by_test_id("open-thread").click()
    await expect(replies(page).last).to_contain_text("Got fix the guide")
    await write(page, "and the handbook", "thread-composer")
    await expect(replies(page)).to_have_count(3)
    direct = workspace.channels.messages("ana")
    assert direct[-1].thread_ts == direct[0].ts
    await expect(page.get_by_role("tablist")).to_be_visible()


@pytest.mark.full
async def test_people_from_outside_have_no_home(tabs: WorkspaceTabs, slack: AsyncWebClient) -> None:
    """And no direct messages with the app."""
    page = await tabs.open(EMIL)
    await expect(page.get_by_test_id("channel")).to_have_count(1)
    await expect(page.get_by_role("tablist")).to_be_hidden()


@pytest.mark.parametrize("tabs", ["light", pytest.param("dark", marks=pytest.mark.full)], indirect=True)
async def test_home_in_a_narrow_window(tabs: WorkspaceTabs, slack: AsyncWebClient) -> None:
    """Nothing overflows."""
    long = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 300}, "accessory": JOB["accessory"]}
    typed = input_block("name", "Name", {"type": "plain_text_input"})
    await slack.views_publish(user_id=ANA, view=home(long, DEFAULTS, START, typed))
    page = await tabs.open(ANA, width=400)
    await page.get_by_role("button", name="Channels and people").click()
    await open_app(page)
    await page.get_by_test_id("tab-home").click()
    shown = page.get_by_test_id("home")
    await expect(shown.get_by_label("Name")).to_be_visible()
    assert await shown.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    await shown.get_by_role("button", name="More options").click()
    await expect(page.get_by_role("menuitem", name="Retry")).to_be_in_viewport(ratio=1)
