"""The whole product as a team uses it: Slack in a real browser, a real coding agent in its sandbox, GitHub."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect
from support.servers.model_script import Say, WriteFile
from support.worlds.browser_page import ANA, DOCS, WorkspaceTabs, replies, write
from support.worlds.team_world import TeamWorld, team_world

from bot.jobserver.sandbox.bubblewrap import COPY

pytestmark = [pytest.mark.promise("whole product"), pytest.mark.asyncio(loop_scope="module"), pytest.mark.browser]
PATIENCE_MS = 60_000
PAGE = str(COPY / "colours.md")


@pytest_asyncio.fixture(loop_scope="module")
async def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TeamWorld]:
    async with team_world(tmp_path, monkeypatch) as team:
        team.model.script.on(
            "Make it American", WriteFile(PAGE, "# Colors\n\nA color.\n"), Say("I made **it** American.")
        )
        team.model.script.on("make it shorter", WriteFile(PAGE, "# Colors\n"), Say("Only the title is left."))
        team.model.script.on("Add a sentence", WriteFile(PAGE, "# Colors\n\nMany.\n"), Say("There is a sentence now."))
        yield team


@pytest_asyncio.fixture(loop_scope="module")
async def tabs(team: TeamWorld, browser: Browser) -> AsyncIterator[WorkspaceTabs]:
    context = await browser.new_context(color_scheme="light", locale="en-US", timezone_id="UTC")
    tabs = WorkspaceTabs(context, team.workspace.origin)
    yield tabs
    await context.close()
    assert tabs.faults == []


@pytest.mark.full
async def test_from_a_command_through_github_to_the_next_pull_request(team: TeamWorld, tabs: WorkspaceTabs) -> None:
    page = await tabs.open(ANA, DOCS)
    await write(page, "/docs Make it American")
    card = page.get_by_test_id("messages").locator('[data-testid="message"]:not([data-ephemeral])').first
    await expect(card).to_contain_text("Finished with a pull request", timeout=PATIENCE_MS)
    await card.get_by_test_id("open-thread").click()
    ended = _last(page)
    await expect(ended).to_contain_text("I made it American.")
    await expect(ended.locator("strong, b").filter(has_text="it")).to_be_visible()
    await expect(card).to_contain_text("Colors")
    first = team.github.pull_request(1)
    assert first.title == "Make it American"
    assert "I made **it** American." in first.body

    await write(page, "make it shorter", "thread-composer")
    await expect(_last(page)).to_contain_text("Only the title is left.", timeout=PATIENCE_MS)
    assert _page(team, first.branch) == "# Colors"
    assert "I made **it** American." in "".join(part.text for part in team.model.requests[-1].parts)
    assert "Only the title is left." in team.github.pull_request(1).body

    team.github.merge(1, delete_branch=True)
    await write(page, "Add a sentence", "thread-composer")
    await expect(_last(page)).to_contain_text("There is a sentence now.", timeout=PATIENCE_MS)
    second = team.github.pull_request(2)
    assert second.branch == f"{first.branch}-2"
    assert _page(team, second.branch) == "# Colors\n\nMany."
    assert _page(team, "main") == "# Colors"
    await expect(_last(page).get_by_role("link", name="Open the pull request")).to_have_attribute(
        "href", f"{team.github.url}/acme/docs/pull/2"
    )


def _last(page: Page) -> Locator:
    return replies(page).last


def _page(team: TeamWorld, branch: str) -> str:
    return team.github.repository.git.git("show", f"{branch}:colours.md")
