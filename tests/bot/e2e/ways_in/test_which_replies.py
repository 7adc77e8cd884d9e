"""Replies, and who may do what: each mode, replies to other people, rapid ones, controls, and several projects."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.servers.fake_job_api import Operation, refusing, slow
from support.worlds.card_menu import menu_choice
from support.worlds.ways_in_world import LINK, Job, OpenWorld, WaysInWorld, labels

from bot.domain.jobs.stopping import STOP_WORDS
from bot.notices.said import ButtonId
from bot.slack.rendering.blocks import CARD_MENU, CHOOSE_PROJECT_BUTTONS, FOLLOW_UP, RETRY_JOB, MenuItem, menu_value
from bot.workspace.people import Actor

DOCS = "C0DOCS001"
ASKED_FIRST = "Send this to the agent?"


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


async def test_in_participants_mode_a_refusal_sends_nothing(open_world: OpenWorld) -> None:
    """It is confirmed privately."""
    world = await open_world(PAGEHAND_REPLIES="participants")
    job = await world.begun()
    held = await world.ben.say("docs", "I would not do that", thread_ts=job.ts)
    asked = await world.private_message(world.ben, ASKED_FIRST)
    assert (await world.ben.press("docs", asked.ts, ButtonId.DISCARD_HELD)).ok
    await world.private_message(world.ben, "your reply wasn't sent")
    await world.ana.say("docs", "Go on", thread_ts=job.ts)
    await world.steered(job.id, "Go on")
    assert not held.reactions


@pytest.mark.full
async def test_the_reply_mode_can_be_set_for_a_channel(open_world: OpenWorld, scratch: Path) -> None:
    """In the projects file; every other channel follows the setting."""
    file = scratch / "projects.toml"
    file.write_text(
        f'[[projects]]\nname = "docs"\nproject = "docs"\n[[channels]]\nid = "{DOCS}"\nreplies = "mentions"\n'
    )
    world = await open_world(PAGEHAND_PROJECTS=str(file))
    job = await world.begun()
    await world.ben.say("docs", "Hm", thread_ts=job.ts)
    await world.ben.say("docs", f"{world.bot} and the manual", thread_ts=job.ts)
    await world.steered(job.id, "and the manual")
    elsewhere = await world.begun("Fix the manual", channel="general")
    await world.ben.say("general", "And the index", thread_ts=elsewhere.ts)
    await world.steered(elsewhere.id, "And the index")


@pytest.mark.full
async def test_rapid_replies_in_slack_are_one_message(open_world: OpenWorld) -> None:
    """In written order, each with its own mark; another person's are sent separately."""
    world = await open_world(PAGEHAND_MERGE_SECONDS="2")
    job = await world.begun()
    said = [
        await world.ana.say("docs", words, thread_ts=job.ts) for words in ("And the manual", "and the index", "too")
    ]
    said.append(await world.ben.say("docs", "But not the glossary", thread_ts=job.ts))
    await world.steered(job.id, "And the manual\n\nand the index\n\ntoo", "But not the glossary")
    for message in said:
        await world.marked(message, "white_check_mark")


Asking = Callable[[WaysInWorld, Actor, str], Awaitable[object]]


async def _by_command(world: WaysInWorld, person: Actor, prompt: str) -> None:
    await person.command("docs", "/docs", prompt)


async def _by_mention(world: WaysInWorld, person: Actor, prompt: str) -> None:
    await person.say("docs", f"{world.bot} {prompt}")


async def _by_direct_message(world: WaysInWorld, person: Actor, prompt: str) -> None:
    await person.say("pagehand", prompt)


WAYS = [_by_command, _by_mention, _by_direct_message]


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


async def test_a_guest_can_do_nothing_in_a_jobs_thread(open_world: OpenWorld) -> None:
    """Not steer, stop, mute or retry it."""
    world = await open_world(JOB_API_CANCEL="true")
    job = await world.begun()
    for words in ("And the manual", "!stop", "!mute", "!retry", "!new Another"):
        await world.gia.say("docs", words, thread_ts=job.ts)
    await world.gia.press("docs", job.ts, ButtonId.STOP_JOB)
    await world.gia.react("docs", job.ts, "x")
    await world.until(lambda: len(_refusals(world, world.gia)) >= 6, "a refusal of each")
    await world.ana.say("docs", "Go on", thread_ts=job.ts)
    await world.steered(job.id, "Go on")
    assert world.job_api.cancelled == []
    assert len(world.job_api.created) == 1
    assert "Muted" not in job.card.text


def _refusals(world: WaysInWorld, person: Actor) -> list[str]:
    return [message.text for message in world.private(person) if "guests" in message.text]


async def test_guests_are_admitted_by_a_setting(open_world: OpenWorld) -> None:
    """Like everybody else."""
    world = await open_world(PAGEHAND_ALLOW_GUESTS="true")
    await world.begun(person=world.gia)


@pytest.mark.full
async def test_a_person_of_another_organization_is_refused(open_world: OpenWorld) -> None:
    """Even if shared channels are allowed: they can neither ask nor steer."""
    world = await open_world(PAGEHAND_ALLOW_SHARED_CHANNELS="true")
    await world.emil.say("partners", f"{world.bot} Fix it from outside")
    await world.private_message(world.emil, "only members of ")
    job = await world.begun(channel="partners")
    await world.emil.say("partners", "And the manual", thread_ts=job.ts)
    await world.emil.press("partners", job.ts, ButtonId.STOP_JOB)
    await world.ana.say("partners", "Go on", thread_ts=job.ts)
    await world.steered(job.id, "Go on")
    assert len(world.job_api.created) == 1


async def test_a_shared_channel_is_off_until_it_is_allowed(world: WaysInWorld) -> None:
    """For members, too."""
    await world.ana.command("partners", "/docs", "Fix it")
    assert "other organizations" in (await world.private_message(world.ana, "No job was started")).text
    await world.begun("Fix it elsewhere")
    assert len(world.job_api.created) == 1


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


@pytest.mark.full
async def test_actions_are_audited_and_logged_without_their_words(
    open_world: OpenWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """`pagehand export` prints who, what, when, and the job."""
    caplog.set_level("INFO")
    world = await open_world(JOB_API_CANCEL="true")
    job = await world.begun("Words of a request")
    await world.ben.say("docs", "Words of a reply", thread_ts=job.ts)
    await world.steered(job.id, "Words of a reply")
    await world.gia.say("docs", "Words of a guest", thread_ts=job.ts)
    await world.private_message(world.gia, "guests")
    await world.ben.say("docs", "!mute", thread_ts=job.ts)
    await world.card("Muted: by")
    await world.ben.say("docs", "!unmute", thread_ts=job.ts)
    await world.until(lambda: "Muted: by" not in job.card.text, "the card without it")
    await world.ana.press("docs", job.ts, ButtonId.STOP_JOB)
    await world.said("Stopped by", thread_ts=job.ts)
    await world.until(lambda: RETRY_JOB in str(job.card.blocks), "the card with a retry")
    await world.ana.press("docs", job.ts, RETRY_JOB)
    await world.job_api.until(lambda: len(world.job_api.created) == 2)
    entries = await _exported(world)
    done = [(entry["action"], entry["person"]) for entry in entries]
    ana, ben, gia = world.ana.id, world.ben.id, world.gia.id
    assert done == [
        ("asked", ana),
        ("steered", ben),
        ("refused", gia),
        ("muted", ben),
        ("unmuted", ben),
        ("stopped", ana),
        ("asked", ana),
        ("retried", ana),
    ]
    assert {entry["job"] for entry in entries if entry["action"] in {"steered", "stopped"}} == {job.id}
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert logged.count("audit: ") == len(entries)
    assert "Words of a" not in f"{entries} {[line for line in logged.splitlines() if 'audit' in line]}"


async def _exported(world: WaysInWorld) -> list[dict[str, str]]:
    """Returns the command's output, while the bot is running."""
    exporting = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "export", "--since", "1h"),
        env={"DATABASE_URL": world.app.database_url, "PATH": os.environ["PATH"]},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await exporting.communicate()
    assert exporting.returncode == 0
    return [json.loads(line) for line in out.splitlines()]


async def test_status_is_shown_to_the_person_who_asks(world: WaysInWorld) -> None:
    """Nobody else sees it, and the agent gets nothing."""
    job = await world.begun()
    await world.ben.say("docs", "!status", thread_ts=job.ts)
    await world.private_message(world.ben, "Active: the agent is at work")
    await world.ben.say("docs", "Go on", thread_ts=job.ts)
    await world.steered(job.id, "Go on")


async def test_help_is_shown_to_the_person_who_asks(world: WaysInWorld) -> None:
    """The thread's control words are listed privately."""
    job = await world.begun()
    await world.ben.say("docs", "!help", thread_ts=job.ts)
    assert "!mute" in (await world.private_message(world.ben, "!stop")).text


@pytest.mark.full
async def test_a_muted_job_receives_no_replies_and_posts_only_what_matters(world: WaysInWorld) -> None:
    """Its card says so; `!unmute` ends it."""
    job = await world.begun()
    await world.ben.say("docs", "!mute", thread_ts=job.ts)
    await world.card("Muted: by")
    await world.ana.say("docs", "Not now", thread_ts=job.ts)
    await world.private_message(world.ana, "this job is muted")
    world.job_api.show(job.id, "completed", LINK)
    ended = await world.said("Done.", thread_ts=job.ts)
    assert world.ana.mention not in ended.text
    await world.ben.say("docs", "!unmute", thread_ts=job.ts)
    await world.private_message(world.ben, "No longer muted")
    await world.ana.say("docs", "And the manual", thread_ts=job.ts)
    await world.steered(job.id, "And the manual")


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
async def test_the_word_retry_acts_like_the_button(world: WaysInWorld) -> None:
    """While the job is running, it is refused with an explanation."""
    job = await world.begun()
    await world.ben.say("docs", "!retry", thread_ts=job.ts)
    await world.private_message(world.ben, "Retry is for jobs that failed")
    world.job_api.show(job.id, "completed", None)
    await world.said("Done, without a pull request", thread_ts=job.ts)
    await world.ben.say("docs", "!retry", thread_ts=job.ts)
    await world.job_api.until(lambda: len(world.job_api.created) == 2)


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
async def test_the_end_mentions_the_author_of_the_last_request(world: WaysInWorld) -> None:
    """Once, and nobody else: the requester has followed the thread since the first end."""
    job = await world.begun()
    await world.ben.say("docs", "And the manual", thread_ts=job.ts)
    await world.steered(job.id, "And the manual")
    world.job_api.show(job.id, "completed", LINK)
    ended = (await world.said("Done", thread_ts=job.ts)).text
    assert (ended.count(world.ana.mention), ended.count(world.ben.mention)) == (0, 1)


async def test_edits_of_the_original_request_are_offered(world: WaysInWorld) -> None:
    """As a follow-up, after the job was sent, and only to the author."""
    asked = await world.ana.say("docs", f"{world.bot} Fix the guides")
    created = await world.job("Fix the guides")
    await world.said("Started.", thread_ts=asked.ts)
    await world.ana.edit("docs", asked.ts, f"{world.bot} Fix the guides and the manual")
    offer = await world.private_message(world.ana, "Send the new one as a follow-up?")
    assert (await world.ana.press("docs", offer.ts, ButtonId.SEND_NEW_WORDS)).ok
    await world.steered(created.job_id, "Fix the guides and the manual")
    assert len(world.job_api.created) == 1


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


CAN_CANCEL = {"JOB_API_CANCEL": "true"}


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
@pytest.mark.parametrize("how", ["button", "word", "reaction"])
async def test_a_job_is_cancelled_where_cancel_is_supported(open_world: OpenWorld, how: str) -> None:
    """The person is told, and the card names them; a reply resumes the job."""
    world = await open_world(**CAN_CANCEL)
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


@pytest.mark.full
@pytest.mark.parametrize("how", ["button", "word", "mention", "reaction"])
async def test_without_cancel_the_agent_is_told_to_stop_and_the_thread_says_so(world: WaysInWorld, how: str) -> None:
    """Nobody claims that it has stopped."""
    job = await world.begun()
    await _stop(world, job, how)
    await world.said("I can't stop this job from here", thread_ts=job.ts)
    await world.steered(job.id, STOP_WORDS)
    assert world.job_api.cancelled == []
    assert "Stopped" not in "".join(message.text for message in world.messages(thread_ts=job.ts))


@pytest.mark.full
async def test_a_stop_in_slack_withdraws_waiting_replies(open_world: OpenWorld) -> None:
    """It stops work begun before it. Later replies are sent once the job has ended, earlier ones if their writer says
    so.
    """
    world = await open_world(**CAN_CANCEL)
    job = await world.begun()
    world.job_api.fail(slow(3.0), Operation.MESSAGE)
    await world.ana.say("docs", "And the manual", thread_ts=job.ts)
    await world.job_api.until(lambda: world.job_api.follow_ups(job.id) == ["And the manual"])
    await world.ana.say("docs", "And the index", thread_ts=job.ts)
    await world.ana.say("docs", "!Stop now.", thread_ts=job.ts)
    await world.ana.say("docs", "Only the glossary", thread_ts=job.ts)
    told = (await world.said("Stopped by", thread_ts=job.ts)).ts
    await world.steered(job.id, "And the manual", "Only the glossary")
    question = await world.private_message(world.ana, "Send it anyway?")
    await world.ana.press("docs", question.ts, ButtonId.SEND_HELD)
    await world.steered(job.id, "And the manual", "Only the glossary", "And the index")
    assert set(world.job_api.cancelled) == {job.id}
    assert (await world.said("At work again", thread_ts=job.ts)).ts > told


@pytest.mark.full
async def test_a_probable_stop_is_asked_about_and_not_sent(world: WaysInWorld) -> None:
    """Privately, with the correct word."""
    job = await world.begun()
    said = await world.ana.say("docs", "!stpo", thread_ts=job.ts)
    await world.private_message(world.ana, "Did you mean `!stop`?")
    await world.ana.say("docs", "And the manual", thread_ts=job.ts)
    await world.steered(job.id, "And the manual")
    assert not said.reactions


@pytest.mark.full
async def test_a_reaction_of_a_non_participant_stops_nothing(open_world: OpenWorld) -> None:
    """Neither does another reaction, nor one on another message."""
    world = await open_world(**CAN_CANCEL)
    job = await world.begun()
    started = await world.said("Started.", thread_ts=job.ts)
    await world.ben.react("docs", job.ts, "x")
    await world.ana.react("docs", job.ts, "tada")
    await world.ana.react("docs", started.ts, "x")
    await world.ana.say("docs", "Go on", thread_ts=job.ts)
    await world.steered(job.id, "Go on")
    assert world.job_api.cancelled == []


async def test_an_ended_job_cannot_be_stopped(open_world: OpenWorld) -> None:
    """Anyone who tries is told privately."""
    world = await open_world(**CAN_CANCEL)
    job = await world.finished()
    await world.ben.say("docs", "!stop", thread_ts=job.ts)
    await world.private_message(world.ben, "There's nothing to stop")
    assert world.job_api.cancelled == []


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


async def test_a_named_project_takes_precedence(two_projects: WaysInWorld) -> None:
    """By the command's option, in any case."""
    await two_projects.ana.command("general", "/docs", "project:Guides Describe each endpoint")
    assert (await two_projects.job("Describe each endpoint")).project == "prj_guides"
    await two_projects.card("Project: guides (named in the request)", channel="general")


async def test_a_channel_can_have_a_project(two_projects: WaysInWorld) -> None:
    """It precedes keywords."""
    await two_projects.ana.command("general", "/docs", "Rewrite the tutorial")
    assert (await two_projects.job("Rewrite the tutorial")).project == "prj_api"
    await two_projects.card("Project: api (this channel's)", channel="general")


async def test_a_project_can_be_chosen_by_keywords(two_projects: WaysInWorld) -> None:
    """Only whole words match; a later job in the thread has the same project."""
    asked = await two_projects.ana.say("docs", f"{two_projects.bot} rewrite the Install  Guide")
    assert (await two_projects.job("rewrite the Install  Guide")).project == "prj_guides"
    await two_projects.card("Project: guides (by words in the request)")
    await two_projects.ana.say("docs", f"{two_projects.bot} new Translate it", thread_ts=asked.ts)
    assert (await two_projects.job("Translate it")).project == "prj_guides"
    await two_projects.card("Project: guides (as for the job before in this thread)")


@pytest.mark.parametrize("prompt", ["Fix it", "Rewrite the tutorial of each endpoint"])
async def test_the_person_is_asked_when_nothing_decides_the_project(two_projects: WaysInWorld, prompt: str) -> None:
    """By private buttons, also if two rules match. Nothing is sent before, and the text is kept."""
    await two_projects.ana.command("docs", "/docs", prompt)
    asked = await two_projects.private_message(two_projects.ana, "Which project is this for?")
    assert labels(asked) == ["guides", "api"]
    assert two_projects.job_api.created == []
    assert (await two_projects.ana.press("docs", asked.ts, CHOOSE_PROJECT_BUTTONS[1])).ok
    assert (await two_projects.job(prompt)).project == "prj_api"
    card = await two_projects.card("Project: api (chosen by")
    assert f"asked: {prompt}\n" in card.text


async def test_an_unknown_project_name_is_asked_about(two_projects: WaysInWorld) -> None:
    """The text is kept."""
    await two_projects.ana.command("docs", "/docs", "project:handbook Fix it")
    asked = await two_projects.private_message(two_projects.ana, "There is no project called handbook.")
    await two_projects.ana.press("docs", asked.ts, CHOOSE_PROJECT_BUTTONS[0])
    assert (await two_projects.job("Fix it")).project == "prj_guides"


async def test_the_modal_asks_for_the_project(two_projects: WaysInWorld) -> None:
    """The choice counts as naming it."""
    await two_projects.ana.command("docs", "/docs")
    await two_projects.modal(two_projects.ana, "New job")
    await two_projects.ana.views.enter("prompt", "Fix it")
    await two_projects.ana.views.enter("project", "api")
    assert (await two_projects.ana.views.submit()).ok
    assert (await two_projects.job("Fix it")).project == "prj_api"


@pytest.mark.full
async def test_a_projects_outage_holds_up_no_other(two_projects: WaysInWorld) -> None:
    """One has used up its quota; the other's jobs start."""
    two_projects.job_api.fail(refusing(429, "too many", Retry_After="600"), Operation.CREATE, prompt="For the guides")
    await two_projects.ana.command("docs", "/docs", "project:guides For the guides")
    await two_projects.card("hourly limit is used up")
    await two_projects.ana.command("docs", "/docs", "project:api For the API")
    assert (await two_projects.job("For the API")).project == "prj_api"
    assert [created.prompt for created in two_projects.job_api.created] == ["For the API"]


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
