"""Pagehand's own modals in a real browser: its listeners with real Bolt, the workspace in Slack's place."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect
from support.worlds.browser_page import ANA, BEN, DOCS, WorkspaceTabs, messages
from support.worlds.slack_world import SlackWorld, slack_world

from bot.domain.jobs.details import PlanStep, Progress, StepStatus
from bot.domain.jobs.job import ACTIVE, Job
from bot.domain.people.members import Preference
from bot.domain.requests.request import Person, RequestContext, RequestKind
from bot.domain.threads.thread import Thread, ThreadState, Work
from bot.slack.rendering.cards import card
from bot.slack.rendering.home import HOME_DEFAULTS
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.words.forms import PROMPT_MISSING
from bot.workspace import WorkspaceServer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

AWS = "AKIA" + "IOSFODNN7EXAMPL2"


@pytest_asyncio.fixture(loop_scope="module")
async def world() -> AsyncIterator[SlackWorld]:
    """Pagehand's listeners, with two projects."""
    async with slack_world(names_within=2.0, ack_timeout=2.0) as made:
        made.projects = ("guides", "api")
        receiver = made.receiver()
        await receiver.start()
        await made.workspace.changes.wait_for(lambda: len(made.workspace.socket_mode.connections) == 2)
        yield made
        await receiver.stop(2)


@pytest.fixture
def workspace(world: SlackWorld) -> WorkspaceServer:
    """The workspace whose page is in the browser."""
    return world.workspace


async def start_job(page: Page) -> Locator:
    await page.get_by_role("button", name="Shortcuts").first.click()
    await page.get_by_role("menuitem", name="New task").click()
    await expect(page.get_by_role("dialog", name="New job").get_by_label("What should be done?")).to_be_focused()
    return page.get_by_role("dialog", name="New job")


async def test_a_job_is_requested_by_modal_and_an_error_loses_no_text(tabs: WorkspaceTabs, world: SlackWorld) -> None:
    """The error is at its field; once corrected, the job is recorded as written."""
    page = await tabs.open(ANA, DOCS)
    shown = await start_job(page)
    prompt = shown.get_by_label("What should be done?")
    await prompt.fill("   ")
    await shown.get_by_label("Project").select_option(label="api")
    await shown.get_by_label("channel").select_option(label="#docs")
    await shown.get_by_label("Mention nobody").check()
    await shown.get_by_role("button", name="Start").click()
    await expect(prompt).to_have_accessible_description(
        f"The agent gets your words exactly as you write them. {PROMPT_MISSING}"
    )
    await prompt.fill("Fix the @ben <guides> & *more*")
    await shown.get_by_role("button", name="Start").click()
    await expect(shown).to_have_count(0)
    (asked,) = world.service.started
    assert (asked.prompt, asked.project_said, asked.quiet) == ("Fix the @ben <guides> & *more*", "api", True)
    assert (asked.person, asked.channel_id) == (Person(ANA, world.identity.team_id), DOCS)


@pytest.mark.full
async def test_an_abandoned_draft_is_restored(tabs: WorkspaceTabs, world: SlackWorld) -> None:
    """Even after Escape right behind the last key; nobody else sees the draft."""
    page = await tabs.open(ANA, DOCS)
    shown = await start_job(page)
    await page.keyboard.type("Fix the guides")
    await page.keyboard.press("Escape")
    await expect(shown).to_have_count(0)
    while world.service.drafts.get((ANA, "job/")) != "Fix the guides":  # noqa: ASYNC110 - it is kept after the answer
        await asyncio.sleep(0.01)
    shown = await start_job(page)
    await expect(shown.get_by_label("What should be done?")).to_have_value("Fix the guides")
    other = await tabs.open(BEN, DOCS)
    await expect((await start_job(other)).get_by_label("What should be done?")).to_have_value("")


async def test_a_message_is_handed_over_with_its_secret_removed(tabs: WorkspaceTabs, world: SlackWorld) -> None:
    """The masking is mentioned, the context can be edited, and typed text is kept when the thread is included."""
    ben = world.workspace.people["ben"]
    root = await ben.say("docs", f"Which port? The key is {AWS}")
    await ben.say("docs", "8443, I think", thread_ts=root.ts)
    page = await tabs.open(ANA, DOCS)
    await messages(page).first.hover()
    await page.get_by_test_id("more-actions").click()
    await page.get_by_role("menuitem", name="Hand to Pagehand").click()
    shown = page.get_by_role("dialog", name="Hand to Pagehand")
    context = shown.get_by_label("Context, as the agent gets it")
    await expect(context).to_have_value(re.compile("masked: AWS key"))
    await expect(shown).to_contain_text("Hidden, so that it stays in Slack: AWS key.")
    await page.keyboard.type("Name the port")
    await shown.get_by_label("The whole thread").check()
    await expect(context).to_have_value(re.compile("8443, I think"))
    await expect(shown.get_by_label("What should be done?")).to_have_value("Name the port")
    await context.fill(f"Only this, with {AWS}")
    await shown.get_by_role("button", name="Start").click()
    await expect(shown.get_by_text("looks like a secret")).to_be_visible()
    await context.fill("Only this")
    await shown.get_by_role("button", name="Start").click()
    await expect(shown).to_have_count(0)
    (asked,) = world.service.started
    assert (asked.prompt, asked.context, asked.thread_ts) == ("Name the port", RequestContext("Only this"), root.ts)


@pytest.mark.full
async def test_home_saves_defaults(tabs: WorkspaceTabs, world: SlackWorld) -> None:
    """Home is told that it was opened, and its button opens the defaults."""
    button = {
        "type": "button",
        "action_id": HOME_DEFAULTS,
        "value": "change",
        "text": {"type": "plain_text", "text": "Change"},
    }
    await world.client.views_publish(
        user_id=ANA, view={"type": "home", "blocks": [{"type": "actions", "elements": [button]}]}
    )
    page = await tabs.open(ANA)
    await page.get_by_test_id("channel").filter(has_text="Pagehand").click()
    await page.get_by_test_id("tab-home").click()
    await page.get_by_role("button", name="Change").click()
    shown = page.get_by_role("dialog", name="Your defaults")
    await shown.get_by_label("Project").select_option(label="guides")
    await shown.get_by_label("Mention nobody").check()
    await shown.get_by_role("button", name="Save").click()
    await expect(shown).to_have_count(0)
    assert world.service.preferences[ANA] == Preference("guides", quiet=True)
    assert ("open_home", ANA, 0) in world.service.calls


def working() -> Thread:
    """A running job."""
    job = Job(id="j1", status=ACTIVE)
    steps = (PlanStep("Read the guides", StepStatus.COMPLETED), PlanStep("Fix the port", StepStatus.IN_PROGRESS))
    return Thread(
        id="th1",
        team_id="T0LOCAL01",
        channel_id=DOCS,
        requester_id=ANA,
        prompt="Fix the <port> & the guides",
        project="guides",
        created_at=1_700_000_000.0,
        state=ThreadState(job=job, work=Work(progress=Progress(plan=steps))),
    )


@pytest.mark.full
async def test_the_buttons_of_a_card_work(tabs: WorkspaceTabs, world: SlackWorld) -> None:
    """Its menu, its confirmation before a stop, and a follow-up in a modal."""
    made = card(working(), MessageContext(command="/docs", admin="", bot_user_id=world.identity.bot_user_id))
    await world.client.chat_postMessage(channel=DOCS, text=made.text, blocks=[*made.blocks])
    page = await tabs.open(ANA, DOCS)
    row = messages(page).last
    await expect(row.locator("blockquote")).to_have_text("Fix the <port> & the guides")
    await expect(row.get_by_text("is not shown here")).to_have_count(0)
    await row.get_by_role("button", name="Stop", exact=True).click()
    await page.get_by_role("button", name="Stop it").click()
    await row.get_by_role("button", name="More options").click()
    await page.get_by_role("menuitem", name="Mute").click()
    await world.workspace.changes.wait_for(lambda: len(world.service.actions) == 2)
    assert [each.kind for each in world.service.actions] == [RequestKind.STOP, RequestKind.MUTE]
    await row.get_by_role("button", name="Follow up…").click()
    shown = page.get_by_role("dialog", name="Follow up")
    await shown.get_by_label("What should the agent do next?").fill("And the manual")
    await shown.get_by_role("button", name="Send").click()
    await expect(shown).to_have_count(0)
    assert [call[1].text for call in world.service.calls if call[0] == "follow_up"] == ["And the manual"]
