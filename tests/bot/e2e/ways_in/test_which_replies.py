"""Replies, and who may do what: whom a reply is to, held ones, guests and lists, controls, and several projects."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.worlds.card_menu import menu_choice
from support.worlds.ways_in_world import LINK, Job, OpenWorld, WaysInWorld, labels

from bot.domain.jobs.stopping import STOP_WORDS
from bot.notices.said import ButtonId
from bot.slack.rendering.blocks import CARD_MENU, CHOOSE_PROJECT_BUTTONS, FOLLOW_UP, RETRY_JOB, MenuItem, menu_value
from bot.workspace.people import Actor

DOCS = "C0DOCS001"
ASKED_FIRST = "Send this to the agent?"


@pytest.mark.full
async def test_a_reply_to_another_person_is_not_sent(world: WaysInWorld) -> None:
    """A leading mention of another person, emoji alone, and messages that begin with `//`; none is marked."""
    job = await world.begun()
    asides = [
        await world.ana.say("docs", words, thread_ts=job.ts)
        for words in ("@ben what do you think?", ":tada: :+1:", "// between us", "@writers have a look")
    ]
    await world.ana.say("docs", "Ask @ben about the manual", thread_ts=job.ts)
    await world.steered(job.id, "Ask @ben about the manual")
    assert [list(aside.reactions) for aside in asides] == [[], [], [], []]


@pytest.mark.full
async def test_in_participants_mode_others_are_asked_in_slack(open_world: OpenWorld) -> None:
    """`Send` sends this one, and the next one is asked about again; the second button sends all, in written order, and
    later ones without a question.
    """
    world = await open_world(PAGEHAND_REPLIES="participants")
    job = await world.begun()
    held = await world.ben.say("docs", "And the manual", thread_ts=job.ts)
    asked = await world.private_message(world.ben, ASKED_FIRST)
    assert labels(asked) == ["Send", "Send all I write here", "Don't send"]
    assert ASKED_FIRST not in "".join(message.text for message in world.private(world.ana))
    await world.ana.say("docs", "Mine needs no question", thread_ts=job.ts)
    sent = ["Mine needs no question"]
    await world.steered(job.id, *sent)
    assert (await world.ben.press("docs", asked.ts, ButtonId.SEND_HELD)).ok
    sent += ["And the manual"]
    await world.steered(job.id, *sent)
    await world.marked(held, "white_check_mark")
    await world.ben.say("docs", "And the index", thread_ts=job.ts)
    await world.private_message(world.ben, "And the index")
    await world.ben.say("docs", "And the preface", thread_ts=job.ts)
    asked = await world.private_message(world.ben, "And the preface")
    assert (await world.ben.press("docs", asked.ts, ButtonId.SEND_ALL_HELD)).ok
    sent += ["And the index", "And the preface"]
    await world.steered(job.id, *sent)
    await world.ben.say("docs", "And the glossary", thread_ts=job.ts)
    await world.steered(job.id, *sent, "And the glossary")


Asking = Callable[[WaysInWorld, Actor, str], Awaitable[object]]


async def _by_command(world: WaysInWorld, person: Actor, prompt: str) -> None:
    await person.command("docs", "/docs", prompt)


async def _by_mention(world: WaysInWorld, person: Actor, prompt: str) -> None:
    await person.say("docs", f"{world.bot} {prompt}")


async def _by_direct_message(world: WaysInWorld, person: Actor, prompt: str) -> None:
    await person.say("pagehand", prompt)


WAYS = [_by_command, _by_mention, _by_direct_message]


@pytest.mark.first(ask=1)
@pytest.mark.parametrize("ask", WAYS, ids=lambda ask: ask.__name__.removeprefix("_by_"))
async def test_a_guest_is_refused_by_every_way_in(world: WaysInWorld, ask: Asking) -> None:
    """Privately, with whom to ask and with the text; nothing is visible in the channel."""
    await ask(world, world.gia, "Fix it as a guest")
    told = await world.private_message(world.gia, "guests")
    assert "No job was started" in told.text
    assert "Fix it as a guest" in told.text
    await world.begun("Fix it as a member")
    assert [created.prompt for created in world.job_api.created] == ["Fix it as a member"]
    assert len(world.cards()) == 1


@pytest.mark.first(form=1)
@pytest.mark.parametrize("form", ["job", "hand over", "follow up"])
async def test_a_guest_gets_no_form(world: WaysInWorld, form: str) -> None:
    """The reason is shown instead, before anything is typed in vain."""
    job = await world.begun("Fix it as a member")
    match form:
        case "job":
            await world.gia.command("docs", "/docs")
        case "hand over":
            await world.gia.shortcut("docs", (await world.ana.say("docs", "It is wrong")).ts, "hand_to_pagehand")
        case _:
            await world.gia.press("docs", job.ts, FOLLOW_UP)
    view = await world.until(lambda: _said_in_view(world.gia), "a view that says why")
    assert "guests" in view
    assert len(world.job_api.created) == 1


def _said_in_view(person: Actor) -> str:
    """Returns the text of the open view once it has loaded."""
    words = str(person.views.top.blocks) if person.views.top else ""
    return "" if "One moment" in words else words


@pytest.mark.full
async def test_guests_are_admitted_by_a_setting(open_world: OpenWorld) -> None:
    """Like everybody else."""
    world = await open_world(PAGEHAND_ALLOW_GUESTS="true")
    await world.begun(person=world.gia)


@pytest.mark.full
async def test_only_listed_people_are_admitted(open_world: OpenWorld) -> None:
    """Members of the named groups are included."""
    world = await open_world(PAGEHAND_ALLOWED_PEOPLE="U0GIA0001", PAGEHAND_ALLOWED_GROUPS="S0WRITERS")
    await world.begun("By a writer", person=world.ben)
    world = await _again(world, PAGEHAND_ALLOWED_PEOPLE="U0ANA0001", PAGEHAND_ALLOWED_GROUPS="")
    await world.ben.command("docs", "/docs", "By nobody on the list")
    await world.private_message(world.ben, "only certain people can")
    await world.begun("By Ana")
    assert [created.prompt for created in world.job_api.created] == ["By a writer", "By Ana"]


async def _again(world: WaysInWorld, **settings: str) -> WaysInWorld:
    """The same with a bot that has other settings."""
    await world.app.stop()
    world.app.settings |= settings
    await world.app.start()
    return world


@pytest.mark.full
async def test_only_listed_channels_count(open_world: OpenWorld) -> None:
    """Direct messages count, too."""
    world = await open_world(PAGEHAND_ALLOWED_CHANNELS="C0GENERAL")
    await world.ana.command("docs", "/docs", "Fix it here")
    await world.private_message(world.ana, "Pagehand is for certain channels")
    await world.begun("Fix it there", channel="general")
    await world.ana.say("pagehand", "Fix it directly")
    await world.job("Fix it directly")
    assert len(world.job_api.created) == 2


@pytest.mark.full
async def test_the_hourly_limit_applies_in_slack(open_world: OpenWorld) -> None:
    """Jobs and follow-ups together, for each person separately."""
    world = await open_world(PAGEHAND_HOURLY_LIMIT="2")
    job = await world.begun()
    await world.ana.say("docs", "And the manual", thread_ts=job.ts)
    await world.steered(job.id, "And the manual")
    await world.ana.command("docs", "/docs", "One too many")
    assert "hourly limit (2)" in (await world.private_message(world.ana, "No job was started")).text
    await world.ben.say("docs", "And the index", thread_ts=job.ts)
    await world.steered(job.id, "And the manual", "And the index")
    assert len(world.job_api.created) == 1


async def test_help_is_shown_to_the_person_who_asks(world: WaysInWorld) -> None:
    """The thread's control words are listed privately."""
    job = await world.begun()
    await world.ben.say("docs", "!help", thread_ts=job.ts)
    assert "!mute" in (await world.private_message(world.ben, "!stop")).text


@pytest.mark.full
async def test_a_failed_job_is_retried_as_a_new_job(world: WaysInWorld) -> None:
    """By its button, once; the new card is in the same thread."""
    job = await world.begun()
    world.job_api.show(job.id, "failed")
    await world.said("The job failed", thread_ts=job.ts)
    await world.until(lambda: "Retry" in labels(job.card), "the button")
    assert (await world.ben.press("docs", job.ts, RETRY_JOB)).ok
    await world.until(lambda: len(world.cards()) == 2, "the second card")
    assert world.cards()[1].thread_ts == job.ts
    await world.job_api.until(lambda: len(world.job_api.created) == 2)
    assert {created.prompt for created in world.job_api.created} == {"Fix the guides"}


@pytest.mark.full
async def test_the_cards_menu_offers_the_available_actions(world: WaysInWorld) -> None:
    """Stop while it is running, a follow-up in a modal, the whole request, its id; the pull request at the end."""
    job = await world.begun()
    assert labels(job.card) == ["Stop", "Follow up…"]
    assert (await world.ben.press("docs", job.ts, FOLLOW_UP)).ok
    await world.modal(world.ben, "Follow up")
    await world.ben.views.enter("prompt", "And the manual")
    assert (await world.ben.views.submit()).ok
    await world.steered(job.id, "And the manual")
    await world.until(lambda: "Follow-ups: 1 sent" in job.card.text, "the count")
    thread_id = (await world.app.sql("SELECT id FROM threads"))[0][0]
    await world.ben.press("docs", job.ts, CARD_MENU, value=menu_value(MenuItem.JOB_ID, thread_id))
    await world.private_message(world.ben, job.id)
    await world.ben.press("docs", job.ts, CARD_MENU, value=menu_value(MenuItem.WHOLE_REQUEST, thread_id))
    await world.private_message(world.ben, "The whole request:")
    world.job_api.show(job.id, "completed", LINK)
    await world.until(lambda: labels(job.card) == ["Open the pull request", "Follow up…"], "the button of the end")


@pytest.mark.full
async def test_a_request_edited_or_deleted_in_time_follows_the_edit(world: WaysInWorld) -> None:
    """While the job API is away: the job is created from the edited words, and a deleted request never is."""
    await world.job_api.stop()
    edited = await world.ana.say("docs", f"{world.bot} Fix the guids")
    deleted = await world.ana.say("docs", f"{world.bot} Fix the manual")
    await world.card("asked: Fix the guids\n")
    await world.card("asked: Fix the manual\n")
    await world.ana.edit("docs", edited.ts, f"{world.bot} Fix the guides")
    await world.ana.delete("docs", deleted.ts)
    await world.card("asked: Fix the guides\n")
    await world.job_api.start()
    await world.app.hurry()
    await world.job("Fix the guides")
    await world.app.settled()
    assert len(world.job_api.created) == 1


async def _stop(world: WaysInWorld, job: Job, how: str) -> None:
    match how:
        case "button":
            assert (await world.ben.press("docs", job.ts, ButtonId.STOP_JOB)).ok
        case "word":
            await world.ben.say("docs", "!stop", thread_ts=job.ts)
        case "mention":
            await world.ben.say("docs", f"{world.bot} stop", thread_ts=job.ts)
        case "reaction":
            await world.ana.react("docs", job.ts, "x")


@pytest.mark.full
@pytest.mark.parametrize("how", ["button", "word", "mention", "reaction"])
async def test_a_job_is_cancelled_where_cancel_is_supported(open_world: OpenWorld, how: str) -> None:
    """The person is told, and the card names them; a reply resumes the job."""
    world = await open_world(JOB_API_CANCEL="true")
    job = await world.begun()
    await _stop(world, job, how)
    told = await world.said("Stopped by" if how == "reaction" else "Your job was stopped", thread_ts=job.ts)
    assert (world.ana.mention in told.text, world.ben.mention in told.text) == (True, False)
    who = world.ana if how == "reaction" else world.ben
    await world.until(lambda: f"Stopped by {who.mention}" in job.card.text, "by whom, on the card")
    assert set(world.job_api.cancelled) == {job.id}
    assert world.job_api.follow_ups(job.id) == []
    await world.ana.say("docs", "Go on, but not the index", thread_ts=job.ts)
    await world.steered(job.id, "Go on, but not the index")


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
async def two_projects(open_world: OpenWorld, scratch: Path) -> WaysInWorld:
    """Two projects of one job API."""
    file = scratch / "projects.toml"
    file.write_text(FILE)
    two_projects = await open_world(PAGEHAND_PROJECTS=str(file))
    two_projects.job_api.projects = {"prj_guides", "prj_api"}
    return two_projects


@pytest.mark.full
async def test_a_project_can_be_chosen_by_keywords(two_projects: WaysInWorld) -> None:
    """Only whole words match; a later job in the thread has the same project."""
    asked = await two_projects.ana.say("docs", f"{two_projects.bot} rewrite the Install  Guide")
    assert (await two_projects.job("rewrite the Install  Guide")).project == "prj_guides"
    await two_projects.card("Project: guides (by words in the request)")
    await two_projects.ana.say("docs", f"{two_projects.bot} new Translate it", thread_ts=asked.ts)
    assert (await two_projects.job("Translate it")).project == "prj_guides"
    await two_projects.card("Project: guides (as for the job before in this thread)")


@pytest.mark.full
async def test_the_person_is_asked_when_nothing_decides_the_project(two_projects: WaysInWorld) -> None:
    """By private buttons. Nothing is sent before, and the text is kept."""
    await two_projects.ana.command("docs", "/docs", "Fix it")
    asked = await two_projects.private_message(two_projects.ana, "Which project is this for?")
    assert labels(asked) == ["guides", "api"]
    assert two_projects.job_api.created == []
    assert (await two_projects.ana.press("docs", asked.ts, CHOOSE_PROJECT_BUTTONS[1])).ok
    assert (await two_projects.job("Fix it")).project == "prj_api"
    assert "asked: Fix it\n" in (await two_projects.card("Project: api (chosen by")).text


async def test_the_modal_asks_for_the_project(two_projects: WaysInWorld) -> None:
    """The choice counts as naming it."""
    await two_projects.ana.command("docs", "/docs")
    await two_projects.modal(two_projects.ana, "New job")
    await two_projects.ana.views.enter("prompt", "Fix it")
    await two_projects.ana.views.enter("project", "api")
    assert (await two_projects.ana.views.submit()).ok
    assert (await two_projects.job("Fix it")).project == "prj_api"


@pytest.mark.full
async def test_a_job_is_switched_to_another_project_from_its_card(two_projects: WaysInWorld) -> None:
    """It starts anew in the same thread with its words; the running one is stopped."""
    await two_projects.ana.command("docs", "/docs", "project:guides Fix it")
    assert (await two_projects.job("Fix it")).project == "prj_guides"
    card = await two_projects.card("Project: guides (named in the request)")
    assert (await two_projects.ana.press("docs", card.ts, **menu_choice(card, "Switch project…"))).ok
    asked = await two_projects.private_message(two_projects.ana, "Which project should this be for instead?")
    assert labels(asked) == ["api"]
    assert (await two_projects.ana.press("docs", asked.ts, CHOOSE_PROJECT_BUTTONS[0])).ok
    other = await two_projects.card("Project: api (chosen by")
    assert "moved this to another project" in other.text
    await two_projects.until(lambda: len(two_projects.job_api.created) == 2 or None, "the other job")
    assert [created.project for created in two_projects.job_api.created] == ["prj_guides", "prj_api"]
    stopped = two_projects.job_api.created[0].job_id
    await two_projects.until(
        lambda: STOP_WORDS in two_projects.job_api.follow_ups(stopped) or None, "the words to stop"
    )
    assert two_projects.job_api.follow_ups(two_projects.job_api.created[1].job_id) == []
