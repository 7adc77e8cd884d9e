"""From a message, and from Home, to a job: a real browser, with the whole bot behind it."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect
from support.worlds.app_world import AppWorld, a_world
from support.worlds.browser_page import ANA, DOCS, WorkspaceTabs, messages

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
PATIENCE_MS = 30_000
SECRET = "ghp" + "_" + "a1B2" * 9


@pytest_asyncio.fixture(loop_scope="module")
async def world(tmp_path: Path) -> AsyncIterator[AppWorld]:
    async with a_world(f"sqlite:///{tmp_path}/pagehand.db") as made:
        await made.start()
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def tabs(world: AppWorld, browser: Browser) -> AsyncIterator[WorkspaceTabs]:
    context = await browser.new_context(color_scheme="light", locale="en-US", timezone_id="UTC")
    tabs = WorkspaceTabs(context, world.workspace.origin)
    yield tabs
    await context.close()
    assert tabs.faults == []


def modal(page: Page, title: str) -> Locator:
    return page.locator("dialog[open]").filter(has=page.get_by_role("heading", name=title))


async def test_a_handed_over_context_can_be_edited(world: AppWorld, tabs: WorkspaceTabs) -> None:
    """The context can be edited; what the agent gets is what was shown."""
    await world.workspace.people["ben"].say("docs", f"The port is wrong. Key: {SECRET}")
    page = await tabs.open(ANA, DOCS)
    await messages(page).last.hover()
    await page.get_by_test_id("more-actions").click()
    await page.get_by_role("menuitem", name="Hand to Pagehand").click()
    shown = modal(page, "Hand to Pagehand")
    context = shown.get_by_label("Context, as the agent gets it")
    await expect(context).to_have_value(re.compile(r"Key: \[masked: GitHub token\]"))
    await expect(shown).to_contain_text("Hidden, so that it stays in Slack: GitHub token.")
    await context.fill("The port is 8443.")
    await shown.get_by_label("What should be done?").fill("Fix the port")
    await shown.get_by_role("button", name="Start").click()
    await expect(shown).to_have_count(0)
    created = world.fake_job_api.created
    await world.fake_job_api.until(lambda: bool(created), 30.0)
    assert created[0].prompt.startswith("Fix the port")
    assert "The port is 8443." in created[0].prompt
    assert SECRET not in str(created)


@pytest.mark.full
async def test_home_starts_with_an_example_and_shows_requested_jobs(world: AppWorld, tabs: WorkspaceTabs) -> None:
    """It opens the modal, too."""
    page = await tabs.open(ANA)
    await page.get_by_test_id("channel").filter(has_text="Pagehand").click()
    await page.get_by_test_id("tab-home").click()
    home = page.get_by_test_id("home")
    await expect(home).to_contain_text("You haven't asked for a job yet", timeout=PATIENCE_MS)
    await expect(home).to_contain_text("How Pagehand is")
    await home.get_by_role("button", name="Start a job").click()
    shown = modal(page, "New job")
    await shown.get_by_label("What should be done?").fill("Explain the ports")
    await shown.get_by_label("Channel").select_option(label="#docs")
    await shown.get_by_role("button", name="Start").click()
    await expect(shown).to_have_count(0)
    await world.until_said("Explain the ports", "started")
    await page.get_by_test_id("tab-messages").click()
    await page.get_by_test_id("tab-home").click()
    await expect(home.locator("strong").filter(has_text="Explain the ports")).to_be_visible(timeout=PATIENCE_MS)
    await expect(home.get_by_role("link", name="thread")).to_be_visible()
