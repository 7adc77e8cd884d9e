"""Home: a person's jobs and defaults, and for administrators the health of Pagehand."""

from support.worlds.ways_in_world import LINK, OpenWorld, WaysInWorld, labels, text_of

from bot.slack.rendering.home import (
    HOME_DEFAULTS,
    HOME_EXAMPLE,
    HOME_NEWER,
    HOME_OLDER,
    HOME_RETRY,
    HOME_START,
    HOME_STOP,
)


async def test_a_person_without_jobs_sees_how_to_start_one(world: WaysInWorld) -> None:
    """With an example that can be pressed, and a button."""
    await world.ben.views.open_home()
    await world.home(world.ben, "You haven't asked for a job yet")
    await world.ben.views.press(HOME_EXAMPLE)
    form = await world.modal(world.ben, "New job")
    assert "Fix the typos" in text_of(form.blocks)
    await world.ben.views.close()
    await world.ben.views.press(HOME_START)
    await world.modal(world.ben, "New job")
    await world.ben.views.enter("prompt", "Fix the guides")
    await world.ben.views.enter("channel", "docs")
    assert (await world.ben.views.submit()).ok
    async with world.app.hurrying():
        home = await world.home(world.ben, "Fix the guides", without="You haven't asked")
    assert "How Pagehand is" not in text_of(home.blocks)


async def test_home_is_updated_with_its_jobs(world: WaysInWorld) -> None:
    """State, pull request and permalink; after a failure, a retry."""
    async with world.app.hurrying():
        await world.ana.views.open_home()
        job = await world.begun()
        await world.home(world.ana, "Active: the agent is at work")
        world.job_api.show(job.id, "completed", LINK)
        home = await world.home(world.ana, f"<{LINK}|pull request>")
        assert "|thread>" in text_of(home.blocks)
        failed = await world.begun("Fix the manual")
        world.job_api.show(failed.id, "failed")
        await world.home(world.ana, "*Failed*")
        assert (await world.ana.views.press(HOME_RETRY)).ok
        await world.job_api.until(lambda: len(world.job_api.created) == 3)
    assert world.job_api.created[2].prompt == "Fix the manual"


async def test_jobs_are_shown_newest_first_ten_a_page(world: WaysInWorld) -> None:
    """With buttons to the other pages and back."""
    for number in range(11):
        await world.ana.command("docs", "/docs", f"Job number {number:02}")
    await world.job_api.until(lambda: len(world.job_api.created) == 11)
    await world.ana.views.open_home()
    home = text_of((await world.home(world.ana, "Job number 10", without="Job number 00")).blocks)
    assert home.index("Job number 10") < home.index("Job number 01")
    await world.ana.views.press(HOME_OLDER)
    home_with_oldest = await world.home(world.ana, "Job number 00", without="Job number 10")
    assert labels(home_with_oldest)[0] == "Newer"
    await world.ana.views.press(HOME_NEWER)
    await world.home(world.ana, "Job number 10", without="Job number 00")


async def test_personal_defaults_are_saved_and_applied(world: WaysInWorld) -> None:
    """Silently, from the next job on."""
    await world.ana.views.open_home()
    await world.home(world.ana, "When a job ends: you are mentioned")
    await world.ana.views.press(HOME_DEFAULTS)
    await world.modal(world.ana, "Your defaults")
    await world.ana.views.enter("telling", "quiet")
    assert (await world.ana.views.submit()).ok
    await world.home(world.ana, "When a job ends: nobody is mentioned")
    job = await world.finished()
    assert world.ana.mention not in (await world.said("Done.", thread_ts=job.ts)).text


async def test_administrators_see_that_all_is_healthy(world: WaysInWorld) -> None:
    """Ana is one."""
    await world.ana.views.open_home()
    home = text_of((await world.home(world.ana, "How Pagehand is")).blocks)
    assert "All well." in home


async def test_questions_of_the_agent_come_first(world: WaysInWorld) -> None:
    """Until somebody has answered."""
    async with world.app.hurrying():
        await world.ana.views.open_home()
        job = await world.begun()
        world.job_api.show(job.id, "completed", None, details={"question": "Which guides?"})
        home = text_of((await world.home(world.ana, "the agent has a question")).blocks)
        assert home.index("Waiting for you") < home.index("Your jobs")
        await world.ana.say("docs", "All of them", thread_ts=job.ts)
        await world.steered(job.id, "All of them")
        await world.home(world.ana, "Your jobs", without="Waiting for you")


async def test_a_job_is_stopped_on_home_until_its_card_can_be_posted(open_world: OpenWorld) -> None:
    world = await open_world(JOB_API_CANCEL="true")
    async with world.app.hurrying():
        await world.ana.views.open_home()
        await world.home(world.ana, "You haven't asked")
        no_cards = world.workspace.faults.server_error(method="chat.postMessage", count=None)
        await world.ana.command("docs", "/docs", "Fix the guides")
        await world.job_api.until(lambda: world.job_api.created)
        await world.home(world.ana, "Fix the guides")
        assert (await world.ana.views.press(HOME_STOP)).ok
        await world.job_api.until(lambda: world.job_api.cancelled)
        world.workspace.faults.remove(no_cards)
        await world.said("Stopped", thread_ts=(await world.card("Fix the guides")).ts)
