"""The whole product on one machine: the demo's workspace, bot and job server, with or without a real browser."""

import asyncio
import re
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Locator, Page, Request, expect
from support.worlds.browser_page import ANA, DOCS, messages, replies, write
from support.worlds.jobserver_world import git, press_in_demo
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


@pytest.mark.full
@pytest.mark.browser
async def test_a_prompt_is_shown_as_typed_and_notifies_nobody(shared: Demo, context: BrowserContext) -> None:
    typed = "Tell <!channel> & <!here> that this & <b>that</b> stay as they are, &lt; too"
    card = await _done_without_a_change(SeenInSlack(shared.workspace), "docs", typed)
    page = await context.new_page()
    await page.goto(f"{shared.workspace.origin}/#as={ANA}&channel={DOCS}")
    shown = messages(page).and_(page.locator(f'[data-ts="{card.ts}"]')).locator("blockquote")
    await expect(shown).to_have_text(typed)
    await expect(shown.locator(".mention, strong, em, b, s, code")).to_have_count(0)
    everything = [message.text + str(message.blocks) for message in shared.workspace.channels.messages("docs")]
    assert not [text for text in everything if "<!" in text.replace("<!date^", "")]


@pytest.mark.full
async def test_a_private_channel_must_invite_the_bot(shared: Demo) -> None:
    seen, jobs = SeenInSlack(shared.workspace), _jobs(shared)
    await seen.ana.command("leads", "/docs", "Quiet words in private")
    told = await seen.private_message(seen.ana, "`/invite`")
    assert shared.workspace.app.bot_user_id in told.text
    assert "Quiet words in private" in told.text
    assert seen.messages("leads") == []
    assert _jobs(shared) == jobs

    await seen.ana.invite("leads", "pagehand")
    await _done_without_a_change(seen, "leads", "Quiet words in private")
    assert _jobs(shared) == jobs + 1


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


async def test_the_life_of_a_pull_request_is_told_once_each(alone: Demo) -> None:
    """A new commit retires what was said of the one before, and the next pull request has news of its own."""
    seen = SeenInSlack(alone.workspace)
    await seen.ana.command("docs", "/docs", PROMPT)
    first = _link(await seen.said("Done. Here's the pull request:"))
    await press_in_demo(first, "check", name="build", outcome="failed")
    await press_in_demo(
        first, "review", outcome="changes_requested", words="The new spelling needs an entry in the FAQ."
    )
    await seen.card("Checks: failed: build")
    card = await seen.card("Reviews: you (demo) asked for changes")
    await seen.said("you (demo) asked for changes.", thread_ts=card.ts)
    await seen.ana.say("docs", FAQ, thread_ts=card.ts)
    await seen.said("Done. The pull request was updated", thread_ts=card.ts)
    await seen.until(lambda: "failed: build" not in seen.cards()[0].text, "a card without the old head's check")
    await press_in_demo(first, "check", name="build", outcome="passed")
    await press_in_demo(first, "review", outcome="approved")
    await seen.card("Checks: 1 passed")
    await press_in_demo(first, "merge")
    await seen.said("Merged by you (demo).", thread_ts=card.ts)
    await seen.card("Finished: the pull request is merged")

    await seen.ana.say("docs", "Add a page called Support with the text: Write to us.", thread_ts=card.ts)
    await seen.said("so this goes to a new branch and a new pull request", thread_ts=card.ts)
    second = f"{first.removesuffix('1')}2"
    await seen.said(f"<{second}>", thread_ts=card.ts)
    await press_in_demo(second, "check", name="build", outcome="failed")
    await seen.until(lambda: "failed: build" in seen.cards()[0].text, "the failed check of the second pull request")
    await press_in_demo(second, "close")
    await seen.said("The pull request was closed by you (demo)", thread_ts=card.ts)
    said = [each.text.partition("> ")[2] or each.text for each in seen.messages("docs", card.ts)[1:] if each.bot_id]
    beginnings = (
        "Done. Here's the pull request:",
        "A check failed: build.",
        "you (demo) asked for changes.",
        "Done. The pull request was updated:",
        "Merged by you (demo).",
        "The pull request is merged, so this goes to a new branch",
        "Done. ",
        "A check failed: build.",
        "The pull request was closed by you (demo) without being merged.",
    )
    assert [words for words, begin in zip(said, beginnings, strict=True) if not words.startswith(begin)] == []


def _link(message: Message) -> str:
    return str(re.findall(r"<(http://[^|>]*/pulls/\d+)>", message.text)[0])


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


def _jobs(shown: Demo) -> int:
    """Returns how many jobs were created at the job server."""
    with closing(sqlite3.connect(shown.repository.parent / "jobserver" / "jobs.sqlite3")) as database:
        return int(database.execute("SELECT count(*) FROM jobs").fetchone()[0])


def _page(shown: Demo, branch: str, path: str) -> str:
    return git(shown.repository, "show", f"{branch}:{path}")
