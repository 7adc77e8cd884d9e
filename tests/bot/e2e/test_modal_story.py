"""From a modal to the job, and on to Home: the whole bot, with the workspace in Slack's place."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.worlds.app_world import PATIENCE, AppWorld, a_world

from bot.workspace.model.views import View
from bot.workspace.people import Actor

SECRET = "ghp" + "_" + "a1B2" * 9


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[AppWorld]:
    async with a_world(f"sqlite:///{tmp_path}/pagehand.db") as made:
        await made.start()
        yield made


@pytest.fixture
def ana(world: AppWorld) -> Actor:
    return world.workspace.people["ana"]


async def shown(world: AppWorld, person: Actor, title: str) -> View:
    """The modal with this title, once it is there."""
    await world.workspace.changes.wait_for(lambda: person.views.top is not None and person.views.top.title == title)
    assert person.views.top is not None
    return person.views.top


async def home_says(world: AppWorld, person: Actor, *words: str) -> None:
    """Waits until a person's Home has all these words."""

    def says() -> bool:
        home = person.views.home()
        return home is not None and all(word in str(home.blocks) for word in words)

    await world.workspace.changes.wait_for(says, PATIENCE)


async def test_a_job_from_a_modal_is_done_and_shown_in_home(world: AppWorld, ana: Actor) -> None:
    """A person without jobs sees how to begin; then their job and its progress."""
    await ana.views.open_home()
    await home_says(world, ana, "You haven't asked for a job yet", "How Pagehand is")
    await ana.views.press("home_start")
    await shown(world, ana, "New job")
    await ana.views.enter("prompt", "Explain the ports\nin the guide")
    await ana.views.enter("channel", "docs")
    assert (await ana.views.submit()).ok
    await world.until_said("Explain the ports", "started")
    job = world.fake_job_api.job_of("Explain the ports\nin the guide")
    await ana.views.open_home()
    await home_says(world, ana, "*Explain the ports in the guide*", "Active: the agent is at work", "|thread>")
    world.complete(job)
    await world.until_said("Explain the ports", "started", "completed")
    await ana.views.open_home()
    await home_says(world, ana, "Finished with a pull request", "|pull request>")


async def test_a_handed_over_message_is_answered_in_its_thread(world: AppWorld, ana: Actor) -> None:
    """The card is posted in the message's thread, and its secret stays in Slack."""
    said = await world.workspace.people["ben"].say("docs", f"The port is wrong: {SECRET}")
    await ana.shortcut("docs", said.ts, "hand_to_pagehand")
    view = await shown(world, ana, "Hand to Pagehand")
    assert SECRET not in str(view.content)
    await ana.views.enter("prompt", "Fix the port")
    assert (await ana.views.submit()).ok
    channels, created = world.workspace.channels, world.fake_job_api.created
    await world.workspace.changes.wait_for(lambda: len(channels.thread("docs", said.ts)) > 1, PATIENCE)
    assert "Fix the port" in str(channels.thread("docs", said.ts)[1].blocks)
    await world.fake_job_api.until(lambda: bool(created), PATIENCE)
    assert created[0].prompt.startswith("Fix the port")
    assert "[masked: GitHub token]" in created[0].prompt
    assert SECRET not in str(created)


async def test_text_removed_from_a_context_stays_in_slack(world: AppWorld, ana: Actor) -> None:
    """If nothing is left, the agent gets only the request."""
    root = await ana.say("docs", "Something between us")
    said = await world.workspace.people["ben"].say("docs", "The port is wrong", thread_ts=root.ts)
    await ana.shortcut("docs", said.ts, "hand_to_pagehand")
    await shown(world, ana, "Hand to Pagehand")
    await ana.views.enter("prompt", "Fix the port")
    await ana.views.enter("context/message/0", None)
    assert (await ana.views.submit()).ok
    created = world.fake_job_api.created
    await world.fake_job_api.until(lambda: bool(created), PATIENCE)
    assert created[0].prompt == "Fix the port"


async def test_a_follow_up_from_a_modal_is_sent_like_any_other(world: AppWorld, ana: Actor) -> None:
    """It is sent once, after earlier replies; there is no message to mark."""
    (job,) = await world.begin("Fix the guides")
    card = await world.card("Fix the guides")
    await world.reply("Fix the guides", "And the FAQ", person="ben")
    await ana.press("docs", card, "follow_up")
    await shown(world, ana, "Follow up")
    await ana.views.enter("prompt", "And the manual")
    assert (await ana.views.submit()).ok
    await world.fake_job_api.until(lambda: len(world.fake_job_api.follow_ups(job)) == 2, PATIENCE)
    assert world.fake_job_api.follow_ups(job) == ["And the FAQ", "And the manual"]
    await world.settled()


async def test_a_failed_job_is_retried_from_home(world: AppWorld, ana: Actor) -> None:
    """Home shows the failure automatically, since it was opened once; it shows the retry as well."""
    async with world.hurrying():
        await ana.views.open_home()
        (job,) = await world.begin("Fix the guides")
        await home_says(world, ana, "*Fix the guides*", "Active: the agent is at work")
        world.fake_job_api.show(job, "failed")
        await home_says(world, ana, "*Failed*", "'home_retry'")
        assert (await ana.views.press("home_retry")).ok
        await world.fake_job_api.until(lambda: len(world.fake_job_api.created) == 2, PATIENCE)
        assert [each.prompt for each in world.fake_job_api.created] == ["Fix the guides"] * 2
        await home_says(world, ana, "Active: the agent is at work")
