"""What people look at passes axe: the workspace's page and the pull requests' pages, on phones, too, in both modes.
test_story.py has the two pages that people look at most in the default lane.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect
from slack_sdk.web.async_client import AsyncWebClient
from support.worlds.browser_page import ANA, DOCS, messages, replies, violations, write
from support.worlds.jobserver_world import press_in_demo
from support.worlds.pictures import PICTURES

from bot.cli.demo_services import Demo, running_demo

pytestmark = [pytest.mark.full, pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
PATIENCE = 30.0
"""Seconds; far more than anything here takes."""


class Told(NamedTuple):
    """A demo after a job with a follow-up: its page for Ana, the card's `ts`, and the pull request's address; `plan` is
    the thread of a plan that waits, and of a picture.
    """

    address: str
    thread: str
    link: str
    plan: str

    async def open(self, page: Page, place: str) -> None:
        await page.goto(f"{self.address}&{place}")
        await expect(page.locator(f"[data-ready={ANA}]")).to_be_attached()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def told(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Told]:
    async with running_demo(tmp_path_factory.mktemp("demo"), 0) as demo:
        ana, ben = demo.workspace.people["ana"], demo.workspace.people["ben"]
        await ana.command("docs", "/docs", 'Replace "colour" with "color"')
        thread = await _said(demo, r"Done\. Here's the pull request:")
        reply = await ben.say("docs", "Add a page called FAQ with the text: Ask.", thread_ts=thread, files=["faq.md"])
        await _said(demo, r"Done\. The pull request was updated")
        await ana.react("docs", reply.ts, "eyes")
        await ben.say("docs", "It is like #general, see https://pages.example and `code`.", thread_ts=thread)
        await ben.forward("docs", reply.ts, "docs", thread_ts=thread)
        await ben.say("general", "@ana look")
        (link,) = set(re.findall(r"http://[^\s|>]*/pulls/1\b", str(demo.workspace.channels.messages("docs"))))
        await press_in_demo(link, "check", name="build", outcome="failed")
        await press_in_demo(link, "review", outcome="changes_requested", words="See **the style guide**.")
        await _said(demo, r"asked for changes\. Reply")
        await ana.command("docs", "/docs", "plan: Fix the typos")
        plan = await _said(demo, r"Here's the plan")
        demo.workspace.state.files.seconds_to_know = 0.0
        async with aiohttp.ClientSession() as session:
            api = AsyncWebClient(demo.workspace.credentials.bot_token, demo.workspace.api_url, session=session)
            uploaded = await api.files_upload_v2(file=str(PICTURES / "home.png"), filename="colours.png")
            shown, title = {"id": uploaded["file"]["id"]}, {"type": "plain_text", "text": "docs/colours.png"}
            picture = {"type": "image", "slack_file": shown, "alt_text": "All colours", "title": title}
            await api.chat_postMessage(channel=DOCS, text="A picture", blocks=[picture], thread_ts=plan)
        yield Told(f"{demo.workspace.origin}/#as={ANA}", thread, link, plan)


async def _said(demo: Demo, words: str) -> str:
    """Waits for a reply of Pagehand's; returns the `ts` of its thread."""

    def found() -> str | None:
        said = (message for message in demo.workspace.channels.messages("docs") if re.search(words, message.text))
        return next((message.thread_ts for message in said), None)

    thread = await demo.workspace.changes.wait_for(found, PATIENCE)
    assert thread is not None
    return thread


async def channel(page: Page, told: Told) -> None:
    await told.open(page, f"channel={DOCS}")
    await expect(messages(page).last).to_contain_text("A plan waits")


async def thread(page: Page, told: Told) -> None:
    await told.open(page, f"channel={DOCS}&thread={told.thread}")
    await expect(replies(page).last).to_be_visible()


async def plan(page: Page, told: Told) -> None:
    await told.open(page, f"channel={DOCS}&thread={told.plan}")
    await expect(page.get_by_test_id("thread").get_by_role("button", name="Start", exact=True)).to_be_visible()
    await expect(replies(page).last.get_by_role("img", name="All colours")).to_be_visible()


async def toolbar(page: Page, told: Told) -> None:
    await thread(page, told)
    await replies(page).last.hover()
    await page.get_by_role("button", name="Add a reaction").click()


async def modal(page: Page, told: Told) -> None:
    await channel(page, told)
    await write(page, "/docs")
    await expect(page.locator("dialog[open]")).to_be_visible()


async def people(page: Page, told: Told) -> None:
    await channel(page, told)
    await _open_drawer(page)
    await page.get_by_test_id("act-as").click()


async def direct_message(page: Page, told: Told) -> None:
    await channel(page, told)
    await _open_drawer(page)
    await page.get_by_test_id("channel").filter(has_text="Pagehand").click()
    await expect(page.get_by_role("tablist")).to_be_visible()


async def home(page: Page, told: Told) -> None:
    await direct_message(page, told)
    await page.get_by_test_id("tab-home").click()
    await expect(page.get_by_test_id("home")).to_contain_text("Finished with a pull request")


async def _open_drawer(page: Page) -> None:
    """Shows what narrow windows hide."""
    drawer = page.get_by_role("button", name="Channels and people")
    if await drawer.is_visible():
        await drawer.click()
        await expect(page.locator("#sidebar")).to_be_in_viewport(ratio=1)


def page_at(suffix: str) -> Callable[[Page, Told], Awaitable[object]]:
    return lambda page, told: page.goto(re.sub(r"/1$", "", told.link) + suffix)


VIEWS: dict[str, Callable[[Page, Told], Awaitable[object]]] = {
    "channel": channel,
    "thread": thread,
    "plan": plan,
    "toolbar": toolbar,
    "modal": modal,
    "people": people,
    "direct message": direct_message,
    "home": home,
    "pull requests": page_at(""),
    "diff": page_at("/1"),
    "rendered": page_at("/1/rendered"),
    "missing pull request": page_at("/9"),
}


@pytest.mark.parametrize("mode", ["dark", "light"])
@pytest.mark.parametrize("width", [390, 1280])
async def test_every_view_passes_axe(told: Told, browser: Browser, mode: Any, width: int) -> None:
    """And fits."""
    context = await browser.new_context(
        color_scheme=mode, locale="en-US", reduced_motion="reduce", viewport={"width": width, "height": 800}
    )
    page = await context.new_page()
    found: dict[str, list[str]] = {}
    for name, show in VIEWS.items():
        await show(page, told)
        found[name] = await violations(page)
        if await page.evaluate(TOO_WIDE):
            found[name].append("it is wider than the window")
        await page.keyboard.press("Escape")
        await page.keyboard.press("Escape")  # closes the drawer, too
        await expect(page.locator("dialog[open]")).to_have_count(0)
    await context.close()
    assert {name: faults for name, faults in found.items() if faults} == {}


async def test_one_button_stands_out_in_a_thread(told: Told, browser: Browser) -> None:
    """The card's."""
    page = await browser.new_page()
    await thread(page, told)
    await expect(page.get_by_test_id("thread").locator(".button.primary")).to_have_text("Open the pull request")
    await page.close()
