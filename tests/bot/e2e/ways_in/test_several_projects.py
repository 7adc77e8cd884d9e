"""Two projects: which one a job is for, how the card says so, and what is separate."""

from pathlib import Path

import pytest
from support.servers.fake_job_api import Operation, refusing
from support.worlds.card_menu import menu_choice
from support.worlds.ways_in_world import OpenWorld, WaysInWorld, labels

from bot.domain.jobs.stopping import STOP_WORDS
from bot.slack.rendering.blocks import CHOOSE_PROJECT_BUTTONS

FILE = """
[[projects]]
name = "guides"
project = "prj_guides"
words = ["install guide", "tutorial"]

[[projects]]
name = "api"
project = "prj_api"
channels = ["C0GENERAL"]
words = ["endpoint"]
"""


@pytest.fixture
async def world(open_world: OpenWorld, scratch: Path) -> WaysInWorld:
    """Two projects of one job API."""
    file = scratch / "projects.toml"
    file.write_text(FILE)
    world = await open_world(PAGEHAND_PROJECTS=str(file))
    world.job_api.projects = {"prj_guides", "prj_api"}
    return world


async def test_a_named_project_takes_precedence(world: WaysInWorld) -> None:
    """By the command's option, in any case."""
    await world.ana.command("general", "/docs", "project:Guides Describe each endpoint")
    assert (await world.job("Describe each endpoint")).project == "prj_guides"
    await world.card("Project: guides (named in the request)", channel="general")


async def test_a_channel_can_have_a_project(world: WaysInWorld) -> None:
    """It precedes keywords."""
    await world.ana.command("general", "/docs", "Rewrite the tutorial")
    assert (await world.job("Rewrite the tutorial")).project == "prj_api"
    await world.card("Project: api (this channel's)", channel="general")


async def test_a_project_can_be_chosen_by_keywords(world: WaysInWorld) -> None:
    """Only whole words match; a later job in the thread has the same project."""
    asked = await world.ana.say("docs", f"{world.bot} rewrite the Install  Guide")
    assert (await world.job("rewrite the Install  Guide")).project == "prj_guides"
    await world.card("Project: guides (by words in the request)")
    await world.ana.say("docs", f"{world.bot} new Translate it", thread_ts=asked.ts)
    assert (await world.job("Translate it")).project == "prj_guides"
    await world.card("Project: guides (as for the job before in this thread)")


@pytest.mark.parametrize("prompt", ["Fix it", "Rewrite the tutorial of each endpoint"])
async def test_the_person_is_asked_when_nothing_decides_the_project(world: WaysInWorld, prompt: str) -> None:
    """By private buttons, also if two rules match. Nothing is sent before, and the text is kept."""
    await world.ana.command("docs", "/docs", prompt)
    asked = await world.private_message(world.ana, "Which project is this for?")
    assert labels(asked) == ["guides", "api"]
    assert world.job_api.created == []
    assert (await world.ana.press("docs", asked.ts, CHOOSE_PROJECT_BUTTONS[1])).ok
    assert (await world.job(prompt)).project == "prj_api"
    card = await world.card("Project: api (chosen by")
    assert f"asked: {prompt}\n" in card.text


async def test_an_unknown_project_name_is_asked_about(world: WaysInWorld) -> None:
    """The text is kept."""
    await world.ana.command("docs", "/docs", "project:handbook Fix it")
    asked = await world.private_message(world.ana, "There is no project called handbook.")
    await world.ana.press("docs", asked.ts, CHOOSE_PROJECT_BUTTONS[0])
    assert (await world.job("Fix it")).project == "prj_guides"


async def test_the_modal_asks_for_the_project(world: WaysInWorld) -> None:
    """The choice counts as naming it."""
    await world.ana.command("docs", "/docs")
    await world.modal(world.ana, "New job")
    await world.ana.views.enter("prompt", "Fix it")
    await world.ana.views.enter("project", "api")
    assert (await world.ana.views.submit()).ok
    assert (await world.job("Fix it")).project == "prj_api"


@pytest.mark.full
async def test_a_projects_outage_holds_up_no_other(world: WaysInWorld) -> None:
    """One has used up its quota; the other's jobs start."""
    world.job_api.fail(refusing(429, "too many", Retry_After="600"), Operation.CREATE, prompt="For the guides")
    await world.ana.command("docs", "/docs", "project:guides For the guides")
    await world.card("hourly limit is used up")
    await world.ana.command("docs", "/docs", "project:api For the API")
    assert (await world.job("For the API")).project == "prj_api"
    assert [created.prompt for created in world.job_api.created] == ["For the API"]


async def test_a_job_is_switched_to_another_project_from_its_card(world: WaysInWorld) -> None:
    """It starts anew in the same thread with its words; the running one is stopped."""
    await world.ana.command("docs", "/docs", "project:guides Fix it")
    assert (await world.job("Fix it")).project == "prj_guides"
    card = await world.card("Project: guides (named in the request)")
    assert (await world.ana.press("docs", card.ts, **menu_choice(card, "Switch project…"))).ok
    asked = await world.private_message(world.ana, "Which project should this be for instead?")
    assert labels(asked) == ["api"]
    assert (await world.ana.press("docs", asked.ts, CHOOSE_PROJECT_BUTTONS[0])).ok
    other = await world.card("Project: api (chosen by")
    assert "moved this to another project" in other.text
    await world.until(lambda: len(world.job_api.created) == 2 or None, "the other job")
    assert [created.project for created in world.job_api.created] == ["prj_guides", "prj_api"]
    stopped = world.job_api.created[0].job_id
    await world.until(lambda: STOP_WORDS in world.job_api.follow_ups(stopped) or None, "the words to stop")
    assert world.job_api.follow_ups(world.job_api.created[1].job_id) == []
