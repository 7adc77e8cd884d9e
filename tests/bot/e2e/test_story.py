"""The whole product on one machine: the demo's workspace, bot and job server, with or without a real browser."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Locator, Page, Request, expect
from support.worlds.browser_page import ANA, DOCS, messages, replies, violations, write
from support.worlds.jobserver_world import git
from support.worlds.pictures import PICTURES, TAKEN_FOR_README, take_picture
from support.worlds.ways_in_world import SeenInSlack

from bot.cli.demo import TOUR, guide
from bot.cli.demo_services import Demo, running_demo
from bot.workspace.model.entities import Message

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("demo")]
PROMPT = 'Replace "colour" with "color"'
FAQ = "Also add a page called FAQ with the text: Ask us anything."
PATIENCE = 300.0
"""Seconds; far more than anything here takes."""
CARD_STATES = (
    "Waiting to be sent to the agent",
    "Active: the agent is at work",
    "Finished with a pull request",
)


@dataclass
class Witness:
    """Records what no page may do: errors on the console, exceptions, dialogs, requests to another machine."""

    faults: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext) -> None:
        context.on("console", lambda message: self._note(message.type, message.text))
        context.on("weberror", lambda error: self.faults.append(f"thrown: {error.error}"))
        context.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        context.on("request", self._note_request)

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.faults.append(f"{kind}: {text}")

    def _note_request(self, request: Request) -> None:
        if urlsplit(request.url).scheme != "data" and urlsplit(request.url).hostname != "127.0.0.1":
            self.faults.append(f"request: {request.url}")


NOTE_WHAT_PASSES = """
    window.passed = [];
    const note = (words) => words && window.passed.at(-1) !== words && window.passed.push(words);
    new MutationObserver(() => {
        const card = document.querySelector('[data-testid="messages"] [data-testid="message"]:not([data-ephemeral])');
        note(card?.querySelector('.section')?.textContent);
        for (const chip of document.querySelectorAll('[data-testid="reaction"]')) note(chip.dataset.name);
    }).observe(document, {childList: true, subtree: true, characterData: true});
"""
"""Records what a page shows only for a moment: the card's states and the reactions, in order."""


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return PICTURES if TAKEN_FOR_README else tmp_path


@pytest.fixture
def directory() -> Iterator[Path]:
    """It is named like that of `pagehand demo`: the path is in the pictures."""
    with tempfile.TemporaryDirectory(prefix="pagehand-demo-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@pytest_asyncio.fixture(loop_scope="module")
async def alone(directory: Path) -> AsyncIterator[Demo]:
    """A demo for one story."""
    port = None if TAKEN_FOR_README else 0
    async with running_demo(directory, port) as shown:
        yield shown


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Demo]:
    """One demo for stories that each use their own thread."""
    async with running_demo(tmp_path_factory.mktemp("demo"), 0) as shown:
        yield shown


@pytest_asyncio.fixture(loop_scope="module")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    """A browser that must have no errors at the end."""
    witness = Witness()
    context = await browser.new_context(
        color_scheme="light", locale="en-US", viewport={"width": 1280, "height": 800}, device_scale_factor=1.5
    )
    witness.watch(context)
    await context.add_init_script(NOTE_WHAT_PASSES)
    yield context
    await context.close()
    assert witness.faults == []


@pytest.mark.browser
async def test_from_a_command_to_a_merged_pull_request(alone: Demo, context: BrowserContext, pictures: Path) -> None:
    page = await context.new_page()
    await page.goto(f"{alone.workspace.origin}/#as={ANA}&channel={DOCS}")
    await _ask(page)
    tab = await _open_pull_request(page, context)
    await _find_fault(page, tab)
    await _steer(page)
    await tab.reload()
    await expect(tab.locator("tr.added").filter(has_text="Ask us anything.")).to_be_visible()
    await tab.get_by_role("button", name="Passed").click()
    await tab.get_by_role("button", name="Approve").click()
    await take_picture(tab, pictures / "pull-request.png", 1400)
    assert "brightness and colour." in _page(alone, "main", "docs/guides/scenes.md")
    await tab.get_by_role("button", name="Merge").click()
    await expect(tab.locator(".head")).to_contain_text("merged")
    await expect(tab.get_by_role("button")).to_have_count(0)
    await expect(replies(page).last).to_contain_text("Merged by you (demo).", timeout=PATIENCE * 1000)
    for words in ("the pull request is merged", "Checks: 1 passed", "Reviews: you (demo) approved"):
        await expect(_card(page)).to_contain_text(words)
    for words in ("A check failed", "asked for changes", "Merged by you (demo)."):
        await expect(replies(page).filter(has_text=words)).to_have_count(1)
    assert [await violations(each) for each in (page, tab)] == [[], []]
    await take_picture(page, pictures / "thread.png", 1085)
    assert "brightness and color." in _page(alone, "main", "docs/guides/scenes.md")
    assert "Ask us anything." in _page(alone, "main", "docs/faq.md")
    assert "lose its colour" not in _page(alone, "main", "docs/getting-started.md")


@pytest.mark.full
@pytest.mark.browser
async def test_the_first_page_says_what_this_is_and_what_to_try(alone: Demo, context: BrowserContext) -> None:
    """On a phone, too, and to a page that is opened later. A tip that was hidden stays so until the next."""
    guiding = asyncio.create_task(guide(alone.workspace, TOUR, lambda _: None))
    page = await context.new_page()
    await page.goto(alone.url)
    tip, try_it = page.get_by_test_id("banner"), page.get_by_role("button", name="Try it")
    await expect(messages(page).last).to_contain_text("Hello, I'm @pagehand", timeout=PATIENCE * 1000)
    await expect(tip.locator("code")).to_have_text(f"/docs {PROMPT}")
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.reload()
    await expect(tip).to_contain_text("Next: In #docs")
    await tip.get_by_role("button").click()
    await expect(tip).to_be_hidden()
    await try_it.click()
    await page.get_by_role("dialog").get_by_role("textbox").fill(PROMPT)
    await page.get_by_role("button", name="Start").click()
    await expect(tip).to_contain_text("Open the pull request's page", timeout=PATIENCE * 1000)
    await page.get_by_test_id("open-thread").click()
    await expect(tip).to_be_in_viewport(ratio=1)
    guiding.cancel()


async def _ask(page: Page) -> None:
    await expect(page.locator(f"[data-ready={ANA}]")).to_be_attached()
    await page.get_by_test_id("composer").press_sequentially(f"/docs {PROMPT}")
    await page.get_by_test_id("composer").press("Enter")
    card = _card(page)
    await expect(card).to_contain_text("@ana asked:", timeout=PATIENCE * 1000)
    await expect(card.locator("blockquote")).to_have_text(PROMPT)
    await expect(card).to_contain_text("Finished with a pull request", timeout=PATIENCE * 1000)
    await expect(card).to_contain_text("Branch: main")
    # While the agent works, a second line shows its current activity.
    states = list(dict.fromkeys(words.partition("\n")[0] for words in await page.evaluate("window.passed")))
    assert len(states) > 1, "the card never changed"
    assert [state for state in CARD_STATES if state in states] == states
    await card.get_by_test_id("open-thread").click()
    await expect(replies(page).last).to_contain_text("Done. Here's the pull request:")


def _card(page: Page) -> Locator:
    return page.get_by_test_id("messages").locator('[data-testid="message"]:not([data-ephemeral])').first


async def _find_fault(page: Page, tab: Page) -> None:
    """As CI and as a reviewer; both are told in the thread, and shown on the card."""
    await tab.get_by_role("button", name="Failed").click()
    await tab.get_by_label("Your review").fill("The new spelling needs an entry in the FAQ.")
    await tab.get_by_role("button", name="Request changes").click()
    shown = tab.get_by_role("region", name="Checks and reviews").get_by_role("listitem")
    await expect(shown).to_contain_text(["build", "The new spelling needs an entry"])
    await expect(shown.locator(".badge")).to_have_text(["Failed", "Changes requested"])
    asked = replies(page).filter(has_text="you (demo) asked for changes.")
    await expect(asked).to_have_count(1, timeout=PATIENCE * 1000)
    await expect(replies(page).filter(has_text="A check failed: build.")).to_have_count(1)
    await expect(_card(page)).to_contain_text("Checks: failed: build")


async def _steer(page: Page) -> None:
    await write(page, FAQ, "thread-composer")
    mine = replies(page).filter(has_text="Ask us anything.")
    await expect(mine.locator('[data-name="white_check_mark"]')).to_be_visible(timeout=PATIENCE * 1000)
    await expect(mine.locator('[data-name="eyes"]')).to_have_count(0)
    again = "Done. The pull request was updated"
    await expect(replies(page).last).to_contain_text(again, timeout=PATIENCE * 1000)
    await expect(mine).to_have_count(1)


async def _open_pull_request(page: Page, context: BrowserContext) -> Page:
    async with context.expect_page() as opened:
        await replies(page).last.get_by_role("link", name="Open the pull request").click()
    tab = await opened.value
    await expect(tab.get_by_role("heading", level=1)).to_have_text(f"{PROMPT} #1")
    guide = tab.get_by_role("table", name="Changes in docs/guides/scenes.md")
    await expect(guide.locator("tr.removed").first).to_contain_text("brightness and colour.")
    await expect(guide.locator("tr.added").first).to_contain_text("brightness and color.")
    await expect(tab.get_by_role("table", name="Changes in CONTRIBUTING.md")).to_have_count(0)
    return tab


async def test_the_bot_joins_a_public_channel_automatically(shared: Demo) -> None:
    assert shared.workspace.app.bot_user_id not in shared.workspace.channels["general"].members
    await _done_without_a_change(SeenInSlack(shared.workspace), "general", "Hello from everywhere")
    assert shared.workspace.app.bot_user_id in shared.workspace.channels["general"].members


async def _done_without_a_change(seen: SeenInSlack, channel: str, prompt: str) -> Message:
    """Asks for something that changes nothing, and waits for its end; returns the card."""
    assert (await seen.ana.command(channel, "/docs", prompt)).ok
    card = await seen.card(f"asked: {prompt.partition(' ')[0]}", channel=channel)
    await seen.said("Done, without a pull request", channel=channel, thread_ts=card.ts)
    return card


async def test_every_way_in_works_by_default(shared: Demo) -> None:
    """The demo's app has the scopes, events and shortcuts for all of them."""
    seen = SeenInSlack(shared.workspace)
    mention = await seen.ana.say("docs", "@pagehand Add a page called Mentions with the text: One.")
    await seen.said("Done. Here's the pull request:", thread_ts=mention.ts)
    direct = await seen.ana.say("pagehand", "Add a page called Directly with the text: One.")
    await seen.said("Done. Here's the pull request:", channel="ana", thread_ts=direct.ts)
    await seen.ana.shortcut("docs", mention.ts, "hand_to_pagehand")
    await seen.modal(seen.ana, "Hand to Pagehand")
    await seen.ana.views.close(clear=True)
    await seen.ana.global_shortcut("new_task")
    await seen.modal(seen.ana, "New job")
    await seen.ana.views.close(clear=True)
    await seen.ana.views.open_home()
    await seen.home(seen.ana, "called Directly")


def _page(shown: Demo, branch: str, path: str) -> str:
    return git(shown.repository, "show", f"{branch}:{path}")
