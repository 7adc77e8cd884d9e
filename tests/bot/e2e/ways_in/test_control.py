"""Control words in a job's thread, the card's buttons, and edits of the requesting message."""

import pytest
from support.worlds.ways_in_world import LINK, WaysInWorld, labels

from bot.notices.said import ButtonId
from bot.slack.rendering.blocks import CARD_MENU, FOLLOW_UP, RETRY_JOB, MenuItem, menu_value


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


async def test_the_word_retry_acts_like_the_button(world: WaysInWorld) -> None:
    """While the job is running, it is refused with an explanation."""
    job = await world.begun()
    await world.ben.say("docs", "!retry", thread_ts=job.ts)
    await world.private_message(world.ben, "Retry is for jobs that failed")
    world.job_api.show(job.id, "completed", None)
    await world.said("Done, without a pull request", thread_ts=job.ts)
    await world.ben.say("docs", "!retry", thread_ts=job.ts)
    await world.job_api.until(lambda: len(world.job_api.created) == 2)


async def test_new_starts_another_job_in_the_thread(world: WaysInWorld) -> None:
    """Its card is a reply there."""
    job = await world.begun()
    await world.ben.say("docs", "!new Translate the guides", thread_ts=job.ts)
    await world.job("Translate the guides")
    assert (await world.card("asked: Translate the guides\n")).thread_ts == job.ts


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
