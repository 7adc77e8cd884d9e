"""The app's modals on the workspace's page, with a real browser and a real Bolt app."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from support.worlds.browser_page import ANA, DOCS, LEADS, WorkspaceTabs
from support.worlds.modal_samples import PROMPT, TITLE, WHOLE, input_block, modal, option, plain

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]
CHOSEN = "(node) => node.selectedOptions[0].label"


class Heard:
    """The payloads that the app received about its modals, in order."""

    def __init__(self, app: AsyncApp, view: Json, *, answer: Callable[[Json], Json] = lambda _: {}) -> None:
        self.bodies: asyncio.Queue[Json] = asyncio.Queue()
        self.view_id = ""
        self._view = view
        self._answer = answer
        app.shortcut("new_task")(self._open)
        app.action("prompt")(self._note)
        app.action("more")(self._note)
        app.view("task")(self._submitted)
        app.view_closed("task")(self._note)

    async def _open(self, ack: Any, body: Json, client: AsyncWebClient) -> None:
        await ack()
        opened = await client.views_open(trigger_id=body["trigger_id"], view=self._view)
        self.view_id = opened["view"]["id"]

    async def _note(self, ack: Any, body: Json) -> None:
        await ack()
        self.bodies.put_nowait(body)

    async def _submitted(self, ack: Any, body: Json) -> None:
        self.bodies.put_nowait(body)
        await ack(**self._answer(body))

    async def next(self) -> Json:
        async with asyncio.timeout(10):
            return await self.bodies.get()


async def open_modal(page: Page) -> Locator:
    """Runs the composer's shortcut and returns the modal that the app opens."""
    await page.get_by_role("button", name="Shortcuts").first.click()
    await page.get_by_role("menuitem", name="New task").click()
    shown = page.locator("dialog[open]")
    await expect(shown).to_be_visible()
    return shown


async def test_everything_entered_reaches_the_app(tabs: WorkspaceTabs, app: AsyncApp) -> None:
    """From each kind of input. The open conversation is chosen from the start."""
    heard = Heard(app, WHOLE)
    page = await tabs.open(ANA, LEADS)
    shown = await open_modal(page)
    await expect(shown.get_by_role("heading", name="New task")).to_be_visible()
    await expect(shown.locator("strong")).to_have_text("Hand over")
    await expect(shown.get_by_label("What to do")).to_be_focused()
    await page.keyboard.type("Fix <b>it</b>")
    await shown.get_by_label("Title").fill("One line")
    await shown.get_by_label("Project").select_option(label="Handbook")
    assert await shown.get_by_label("Where").evaluate(CHOSEN) == "#leads"
    await shown.get_by_label("Not at all").check()
    await shown.get_by_label("Quietly").check()
    await shown.get_by_label("With the thread").check()
    await shown.get_by_role("button", name="Start").click()
    values = (await heard.next())["view"]["state"]["values"]
    assert values["prompt"]["prompt"]["value"] == "Fix <b>it</b>"
    assert values["title"]["title"]["value"] == "One line"
    assert values["project"]["project"]["selected_option"]["value"] == "book"
    assert values["place"]["place"]["selected_conversation"] == LEADS
    assert values["tell"]["tell"]["selected_option"]["value"] == "no"
    assert [each["value"] for each in values["extras"]["extras"]["selected_options"]] == ["quiet", "thread"]
    await expect(shown).to_have_count(0)
    await expect(page.get_by_role("button", name="Shortcuts").first).to_be_focused()


async def test_errors_are_shown_at_their_fields_and_nothing_is_lost(tabs: WorkspaceTabs, app: AsyncApp) -> None:
    """The page's own errors come before it asks the app. An error from the app focuses its field."""
    wrong = {"response_action": "errors", "errors": {"prompt": "Say which <page>."}}
    heard = Heard(app, modal(TITLE, PROMPT), answer=lambda body: wrong if value_of(body, "prompt") == "vague" else {})
    page = await tabs.open(ANA, DOCS)
    shown = await open_modal(page)
    prompt = shown.get_by_label("What to do")
    await shown.get_by_role("button", name="Start").click()
    await expect(prompt).to_have_attribute("aria-invalid", "true")
    await expect(prompt).to_have_accessible_description("Please complete this required field.")
    await prompt.fill("x" * 42)
    await expect(shown.get_by_text("2 too many")).to_be_visible()
    await shown.get_by_role("button", name="Start").click()
    await expect(prompt).to_have_accessible_description("This is 2 characters too long.")
    await expect(prompt).to_have_value("x" * 42)
    await shown.get_by_label("Title").fill("Kept")
    await prompt.fill("vague")
    await prompt.press("Control+Enter")
    await expect(prompt).to_have_accessible_description("Say which <page>.")
    await expect(prompt).to_be_focused()
    await expect(shown.get_by_label("Title")).to_have_value("Kept")
    await prompt.fill("page 3")
    await shown.get_by_role("button", name="Start").click()
    await expect(shown).to_have_count(0)
    assert [value_of(await heard.next(), "prompt") for _ in range(2)] == ["vague", "page 3"]


def value_of(body: Json, block_id: str) -> str | None:
    value: str | None = body["view"]["state"]["values"][block_id][block_id]["value"]
    return value


@pytest.mark.full
async def test_an_update_keeps_what_is_being_typed(tabs: WorkspaceTabs, app: AsyncApp, slack: AsyncWebClient) -> None:
    """Even if the app changes that block while somebody types in the middle of a line."""
    heard = Heard(app, modal(PROMPT))
    page = await tabs.open(ANA, DOCS)
    shown = await open_modal(page)
    prompt = shown.get_by_label("What to do")
    await prompt.fill("one three")
    await prompt.evaluate("(node) => node.setSelectionRange(4, 4)")
    alert = {"type": "section", "text": {"type": "mrkdwn", "text": "A line more"}}
    changed = PROMPT | {"label": plain("What exactly to do")}
    await slack.views_update(view_id=heard.view_id, view=modal(alert, changed, title="Changed"))
    await expect(shown.get_by_role("heading")).to_have_text("Changed")
    await expect(shown.get_by_label("What exactly to do")).to_be_focused()
    await page.keyboard.type("two ")
    await expect(shown.get_by_label("What exactly to do")).to_have_value("one two three")
    await shown.get_by_role("button", name="Start").click()
    assert value_of(await heard.next(), "prompt") == "one two three"


@pytest.mark.full
async def test_typed_text_is_sent_before_the_modal_closes(tabs: WorkspaceTabs, app: AsyncApp) -> None:
    """An app can get the text while it is typed, so that it can keep a draft when Escape closes the modal."""
    element = {"type": "plain_text_input", "dispatch_action_config": {"trigger_actions_on": ["on_character_entered"]}}
    heard = Heard(app, modal(input_block("prompt", "What to do", element, dispatch_action=True), notify_on_close=True))
    page = await tabs.open(ANA, DOCS)
    shown = await open_modal(page)
    await page.clock.install(time=0)
    await page.clock.pause_at(1000)
    await page.keyboard.type("A draft")
    await page.clock.run_for(500)
    await page.keyboard.type(" and more")
    await page.keyboard.press("Escape")
    await expect(shown).to_have_count(0)
    paused, closing, closed = [await heard.next() for _ in range(3)]
    assert [body["actions"][0]["value"] for body in (paused, closing)] == ["A draft", "A draft and more"]
    assert (closed["type"], closed["is_cleared"]) == ("view_closed", False)
    assert heard.bodies.empty()


@pytest.mark.full
async def test_what_opens_in_a_modal_closes_before_it(tabs: WorkspaceTabs, app: AsyncApp) -> None:
    """Escape first closes a menu or dialog and returns the focus to its button."""
    question = {"title": plain("Sure?"), "text": plain("All of it."), "confirm": plain("Yes"), "deny": plain("No")}
    button = {"type": "button", "action_id": "clear", "text": plain("Clear"), "confirm": question}
    menu = {"type": "overflow", "action_id": "menu", "options": [option("One", "1"), option("Two", "2")]}
    Heard(app, modal(PROMPT, {"type": "actions", "elements": [button, menu]}))
    page = await tabs.open(ANA, DOCS)
    shown = await open_modal(page)
    await shown.get_by_role("button", name="More options").click()
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("menuitem", name="Two")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("menuitem")).to_have_count(0)
    await expect(shown.get_by_role("button", name="More options")).to_be_focused()
    await shown.get_by_role("button", name="Clear").click()
    await expect(page.get_by_role("dialog", name="Sure?")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog", name="Sure?")).to_have_count(0)
    await expect(shown.get_by_role("button", name="Clear")).to_be_focused()
    await expect(shown.get_by_label("What to do")).to_be_visible()


MORE = {
    "type": "actions",
    "block_id": "act",
    "elements": [{"type": "button", "action_id": "more", "value": "7", "text": plain("More…")}],
}


@pytest.mark.full
async def test_escape_and_the_cross_close_a_modal(tabs: WorkspaceTabs, app: AsyncApp) -> None:
    """A button in it sends what was typed. The app hears by which of the two it was closed."""
    heard = Heard(app, modal(PROMPT, MORE, notify_on_close=True))
    page = await tabs.open(ANA, DOCS)
    shown = await open_modal(page)
    await shown.get_by_label("What to do").fill("typed")
    await shown.get_by_role("button", name="More…").click()
    pressed = await heard.next()
    assert pressed["actions"][0]["value"] == "7"
    assert pressed["view"]["state"]["values"]["prompt"]["prompt"]["value"] == "typed"
    await page.keyboard.press("Escape")
    await expect(shown).to_have_count(0)
    assert (await heard.next())["is_cleared"] is False
    shown = await open_modal(page)
    await shown.get_by_role("button", name="Close", exact=True).click()
    await expect(shown).to_have_count(0)
    assert (await heard.next())["is_cleared"] is True
