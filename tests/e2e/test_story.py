"""The whole product on one machine: the demo's workspace, bot and job server, with a real browser or without one."""

import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from jobserver_world import git
from playwright.async_api import Browser, BrowserContext, Page, Request, expect
from workspace_desk import ANA, DOCS, messages, replies, write

from bot import demo
from bot.demo import Demo
from bot.workspace.models import Message

pytestmark = pytest.mark.asyncio(loop_scope="module")
PROMPT = 'Replace "colour" with "color" in the guides'
FAQ = "Also add a page called FAQ with the text: Ask us anything."
PATIENCE = 30.0
"""Seconds; far more than anything here takes."""
CARD_STATES = (
    "Waiting to be sent to the agent.",
    "Active: the agent is at work",
    "Finished: the pull request is ready",
)
PICTURES = Path(__file__).parents[2] / ".github"
TAKEN_FOR_README = os.environ.get("PAGEHAND_SCREENSHOTS") == "1"


@dataclass
class Witness:
    """Notes what no page may do: errors on the console, exceptions, dialogs, requests to another machine."""

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
        note(card?.querySelectorAll('.section')[1]?.textContent);
        for (const chip of document.querySelectorAll('[data-testid="reaction"]')) note(chip.dataset.name);
    }).observe(document, {childList: true, subtree: true, characterData: true});
"""
"""Keeps what a page shows only for a moment: the card's states and the reactions, in their order."""


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return PICTURES if TAKEN_FOR_README else tmp_path


@pytest.fixture
def directory() -> Iterator[Path]:
    """Named as `pagehand demo` names its own: the path is in the pictures."""
    with tempfile.TemporaryDirectory(prefix="pagehand-demo-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@pytest_asyncio.fixture(loop_scope="module")
async def alone(directory: Path) -> AsyncIterator[Demo]:
    """A demo for one story."""
    port = None if TAKEN_FOR_README else 0
    async with demo.running(directory, port, port) as shown:
        yield shown


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Demo]:
    """One demo for the stories that each keep to a thread of their own."""
    async with demo.running(tmp_path_factory.mktemp("demo"), 0, 0) as shown:
        yield shown


@pytest_asyncio.fixture(loop_scope="module")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    """A browser with nothing to complain of at the end."""
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
    await _steer(page)
    await _take_picture(page, pictures / "thread.png", 900)
    tab = await _open_pull_request(page, context)
    await _take_picture(tab, pictures / "pull-request.png", 1200)
    assert "brightness and colour." in _page(alone, "main", "docs/guides/scenes.md")
    await tab.get_by_role("button", name="Merge").click()
    await expect(tab.locator(".head")).to_contain_text("merged")
    await expect(tab.get_by_role("button", name="Merge")).to_have_count(0)
    assert "brightness and color." in _page(alone, "main", "docs/guides/scenes.md")
    assert "Ask us anything." in _page(alone, "main", "docs/faq.md")
    assert "lose its colour" not in _page(alone, "main", "docs/getting-started.md")


async def _ask(page: Page) -> None:
    await expect(page.locator(f"[data-ready={ANA}]")).to_be_attached()
    await page.get_by_test_id("composer").press_sequentially(f"/docs {PROMPT}")
    await page.get_by_test_id("composer").press("Enter")
    card = page.get_by_test_id("messages").locator('[data-testid="message"]:not([data-ephemeral])').first
    await expect(card).to_contain_text("@ana asked:", timeout=PATIENCE * 1000)
    await expect(card.locator("blockquote")).to_have_text(PROMPT)
    await expect(card).to_contain_text("Finished: the pull request is ready", timeout=PATIENCE * 1000)
    await expect(card).to_contain_text("Branch: main")
    states = await page.evaluate("window.passed")
    assert len(states) > 1, "the card never changed"
    assert [state for state in CARD_STATES if state in states] == states
    await card.get_by_test_id("open-thread").click()
    await expect(replies(page).last).to_contain_text("Finished. The pull request is ready:")


async def _steer(page: Page) -> None:
    await write(page, FAQ, "thread-composer")
    mine = replies(page).filter(has_text="Ask us anything.")
    await expect(mine.locator('[data-name="white_check_mark"]')).to_be_visible(timeout=PATIENCE * 1000)
    await expect(mine.locator('[data-name="eyes"]')).to_have_count(0)
    passed = await page.evaluate("window.passed")
    assert passed.index("eyes") < passed.index("white_check_mark")
    again = "Finished again. The pull request is ready:"
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
    await expect(tab.locator("tr.added").filter(has_text="Ask us anything.")).to_be_visible()
    await expect(tab.get_by_role("table", name="Changes in docs/troubleshooting.md")).to_have_count(0)
    return tab


async def _take_picture(page: Page, path: Path, height: int) -> None:
    """The page from its top, without the pointer resting on anything."""
    await page.mouse.move(0, 0)
    await page.set_viewport_size({"width": 1280, "height": height})
    await page.screenshot(path=path, animations="disabled", caret="hide")
    if TAKEN_FOR_README:
        assert os.path.getsize(path) < 300_000  # noqa: PTH202,ASYNC240 - no more than a moment


@pytest.mark.browser
async def test_a_prompt_is_shown_as_it_was_typed_and_calls_nobody(shared: Demo, context: BrowserContext) -> None:
    typed = "Tell <!channel> & <!here> that this & <b>that</b> stay as they are, &lt; too"
    card = await _asked(shared, "docs", typed)
    page = await context.new_page()
    await page.goto(f"{shared.workspace.origin}/#as={ANA}&channel={DOCS}")
    shown = messages(page).and_(page.locator(f'[data-ts="{card.ts}"]')).locator("blockquote")
    await expect(shown).to_have_text(typed)
    await expect(shown.locator(".mention, strong, em, b, s, code")).to_have_count(0)
    everything = [message.text + str(message.blocks) for message in shared.workspace.messages("docs")]
    assert not [text for text in everything if "<!" in text]
    await _told(shared, "docs", card.ts, "Finished without a pull request")


async def test_a_private_channel_has_to_invite_the_bot(shared: Demo) -> None:
    ana, jobs = shared.workspace.person("ana"), _jobs(shared)
    await ana.command("leads", "/docs", "Quiet words in private")
    told = await _told_alone(shared, "leads", "`/invite`")
    assert shared.workspace.app.bot_user_id in told.text
    assert "Quiet words in private" in told.text
    assert shared.workspace.messages("leads") == []
    assert _jobs(shared) == jobs

    await ana.invite("leads", "pagehand")
    card = await _asked(shared, "leads", "Quiet words in private")
    await _told(shared, "leads", card.ts, "Finished without a pull request")
    assert _jobs(shared) == jobs + 1


async def test_the_bot_joins_a_public_channel_by_itself(shared: Demo) -> None:
    assert shared.workspace.app.bot_user_id not in shared.workspace.channel("general").members
    card = await _asked(shared, "general", "Hello from everywhere")
    await _told(shared, "general", card.ts, "Finished without a pull request")
    assert shared.workspace.app.bot_user_id in shared.workspace.channel("general").members


async def test_an_aside_stays_between_people(shared: Demo) -> None:
    card = await _asked(shared, "docs", "Add a page called Asides with the text: One.")
    await _told(shared, "docs", card.ts, "Finished. The pull request")
    ben = shared.workspace.person("ben")
    aside = await ben.say("docs", "// Add a page called Secret with the text: Two.", thread_ts=card.ts)
    sent = await ben.say("docs", "Add a page called Third with the text: Three.", thread_ts=card.ts)
    await _told(shared, "docs", card.ts, "Finished again. The pull request")
    assert list(sent.reactions) == ["white_check_mark"]
    assert aside.reactions == {}
    branch = _branch_with(shared, "docs/asides.md")
    assert "Three." in _page(shared, branch, "docs/third.md")
    assert "Secret" not in git(shared.repository, "log", "--format=%B", branch)


async def test_a_long_prompt_is_one_click_away(shared: Demo) -> None:
    prompt = "Long words come first. " + "And more of them follow. " * 60 + "The end of it."
    card = await _asked(shared, "docs", "Long words come first.", prompt)
    assert "The end of it." not in str(card.blocks)
    answer = await shared.workspace.person("gia").press("docs", card.ts, "show_prompt")
    assert answer.ok
    await _told_alone(shared, "docs", "The end of it.", "gia")
    assert "The end of it." not in str(shared.workspace.person("ana").ephemerals("docs"))
    await _told(shared, "docs", card.ts, "Finished without a pull request")


async def test_a_partner_is_told_that_their_reply_is_not_sent(shared: Demo) -> None:
    card = await _asked(shared, "partners", "Add a page called Partners with the text: Ours.")
    await _told(shared, "partners", card.ts, "Finished. The pull request")
    emil = shared.workspace.person("emil")
    reply = await emil.say("partners", "Add a page called Theirs with the text: No.", thread_ts=card.ts)
    await _told_alone(shared, "partners", "workspace this job was started in", "emil")
    sent = await shared.workspace.person("ana").say(
        "partners", "Add a page called Last with the text: 3.", thread_ts=card.ts
    )
    await _told(shared, "partners", card.ts, "Finished again. The pull request")
    assert list(sent.reactions) == ["white_check_mark"]
    assert reply.reactions == {}
    assert "Theirs" not in git(shared.repository, "log", "--format=%B", _branch_with(shared, "docs/partners.md"))


async def test_the_command_alone_explains_itself(shared: Demo) -> None:
    before = len(shared.workspace.messages("docs"))
    for words in ("", "help"):
        answer = await shared.workspace.person("ben").command("docs", "/docs", words)
        assert "/docs" in answer.text
        assert "//" in answer.text
    assert len(shared.workspace.messages("docs")) == before


async def _asked(shown: Demo, channel: str, words: str, prompt: str = "") -> Message:
    """Ana asks for it; returns the card."""
    known = {message.ts for message in shown.workspace.messages(channel)}

    def card() -> Message | None:
        fresh = (message for message in shown.workspace.messages(channel) if message.ts not in known)
        return next((message for message in fresh if (message.metadata or {}).get("event_payload")), None)

    answer = await shown.workspace.person("ana").command(channel, "/docs", prompt or words)
    assert answer.ok
    found = await shown.workspace.wait_for(card, PATIENCE)
    assert found is not None
    return found


async def _told(shown: Demo, channel: str, ts: str, words: str) -> Message:
    def reply() -> Message | None:
        return next((message for message in shown.workspace.thread(channel, ts)[1:] if words in message.text), None)

    found = await shown.workspace.wait_for(reply, PATIENCE)
    assert found is not None
    return found


async def _told_alone(shown: Demo, channel: str, words: str, person: str = "ana") -> Message:
    """What only this person sees."""

    def ephemeral() -> Message | None:
        seen = shown.workspace.person(person).ephemerals(channel)
        return next((message for message in seen if words in message.text + str(message.blocks)), None)

    found = await shown.workspace.wait_for(ephemeral, PATIENCE)
    assert found is not None
    return found


def _jobs(shown: Demo) -> int:
    """How many jobs the job server has ever been asked for."""
    with closing(sqlite3.connect(shown.repository.parent / "jobserver" / "jobs.sqlite3")) as database:
        return int(database.execute("SELECT count(*) FROM jobs").fetchone()[0])


def _page(shown: Demo, branch: str, path: str) -> str:
    return git(shown.repository, "show", f"{branch}:{path}")


def _branch_with(shown: Demo, path: str) -> str:
    """The one branch on which a page has been added."""
    branches = git(shown.repository, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    (found,) = [branch for branch in branches if git(shown.repository, "ls-tree", "--name-only", branch, path)]
    return found
