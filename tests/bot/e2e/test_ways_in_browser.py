"""The main ways in as people use them: the whole bot, at the workspace's page in a real browser.

All tests share one world; each uses its own messages.
"""

import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect
from support.scratch import IN_MEMORY
from support.worlds.browser_page import ANA, DOCS, WorkspaceTabs, messages, replies, write
from support.worlds.pictures import PICTURES, TAKEN_FOR_README, take_picture
from support.worlds.ways_in_world import WaysInWorld, ways_in_world

from bot.slack.rendering.modals import PROMPT_MISSING

pytestmark = [pytest.mark.promise("ways in"), pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
SECRET = "ghp" + "_" + "a1B2" * 9
PROJECTS = f"""
[[projects]]
name = "guides"
project = "prj_guides"
channels = ["{DOCS}"]
cancel = true

[[projects]]
name = "api"
project = "prj_api"
"""
PATIENCE_MS = 20_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[WaysInWorld]:
    """Two projects; jobs of #docs are for the first, whose job API can cancel."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        file = Path(directory) / "projects.toml"
        file.write_text(PROJECTS)
        async with ways_in_world(Path(directory), PAGEHAND_PROJECTS=str(file)) as world:
            world.job_api.projects = {"prj_guides", "prj_api"}
            yield world


@pytest_asyncio.fixture(loop_scope="module")
async def tabs(browser: Browser, world: WaysInWorld) -> AsyncIterator[WorkspaceTabs]:
    """People at the page; the test fails for anything that the page must not do."""
    context = await browser.new_context(
        color_scheme="light", locale="en-US", timezone_id="UTC", device_scale_factor=1.5
    )
    context.set_default_timeout(PATIENCE_MS)
    tabs = WorkspaceTabs(context, world.workspace.origin)
    yield tabs
    await context.close()
    for name in ("ana", "gia"):
        if world.workspace.people[name].views.top is not None:
            await world.workspace.people[name].views.close(clear=True)  # a failed test must not fail the next one
    assert tabs.faults == []


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return PICTURES if TAKEN_FOR_README else tmp_path


def modal(page: Page) -> Locator:
    return page.locator("dialog[open]")


def row(page: Page, ts: str) -> Locator:
    return messages(page).and_(page.locator(f'[data-ts="{ts}"]'))


async def open_thread(page: Page, ts: str) -> None:
    await row(page, ts).get_by_test_id("open-thread").click()


@pytest.mark.full
async def test_error_draft_stop_and_retry_in_a_browser(world: WaysInWorld, tabs: WorkspaceTabs, pictures: Path) -> None:
    """The modal keeps typed text; the card's buttons work."""
    page = await tabs.open(ANA, DOCS)
    await write(page, "/docs")
    prompt = modal(page).get_by_label("What should be done?")
    await prompt.fill(" \n ")
    await modal(page).get_by_role("button", name="Start").click()
    await expect(prompt).to_have_accessible_description(re.compile(re.escape(PROMPT_MISSING)))
    await prompt.fill("Explain in the quick start how to change the port")
    await page.keyboard.press("Escape")
    await expect(modal(page)).to_have_count(0)
    await write(page, "/docs")
    await expect(prompt).to_have_value("Explain in the quick start how to change the port")
    await take_picture(page, pictures / "modal.png", 700)
    await modal(page).get_by_role("button", name="Start").click()
    await expect(modal(page)).to_have_count(0)
    card = await world.card("Active: the agent is at work")
    await row(page, card.ts).get_by_role("button", name="Stop").click()
    await page.get_by_role("button", name="Stop it").click()
    await open_thread(page, card.ts)
    await expect(replies(page).last).to_contain_text("Stopped by @ana")
    await row(page, card.ts).get_by_role("button", name="Retry").click()
    await expect(replies(page).last).to_contain_text("Started.")
    assert len(world.job_api.created) == 2


@pytest.mark.full
async def test_a_message_is_handed_over_with_its_secret_masked(
    world: WaysInWorld, tabs: WorkspaceTabs, pictures: Path
) -> None:
    """The text is sent as shown and edited, and the answer is in its thread."""
    question = await world.ben.say("docs", f"My key is {SECRET}. The guide names port 8080: wrong, it is 8443.")
    page = await tabs.open(ANA, DOCS)
    await row(page, question.ts).hover()
    await row(page, question.ts).get_by_test_id("more-actions").click()
    await page.get_by_role("menuitem", name="Hand to Pagehand").click()
    context = modal(page).get_by_label("Context, as the agent gets it")
    await expect(context).to_have_value(re.compile(r"My key is \[masked: GitHub token\]\."))
    await expect(modal(page)).to_contain_text("Hidden, so that it stays in Slack: GitHub token.")
    await modal(page).get_by_label("What should be done?").fill("Put the right port into the guide")
    await take_picture(page, pictures / "shortcut.png", 800)
    await context.fill("It is 8443.")
    await modal(page).get_by_role("button", name="Start").click()
    await open_thread(page, question.ts)
    await expect(replies(page).last).to_contain_text("Started.")
    prompt = (await world.job("Put the right port into the guide")).prompt
    assert "\n\nIt is 8443.\n\n" in prompt
    assert "My key" not in prompt
