"""Stop: by button, by word and by reaction; with a job API that can cancel, and one that cannot."""

import pytest
from support.servers.fake_job_api import Operation, slow
from support.worlds.ways_in_world import Job, OpenWorld, WaysInWorld

from bot.domain.jobs.stopping import STOP_WORDS
from bot.notices.said import ButtonId

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


@pytest.mark.parametrize("how", ["button", "word", "mention", "reaction"])
async def test_without_cancel_the_agent_is_told_to_stop_and_the_thread_says_so(world: WaysInWorld, how: str) -> None:
    """Nobody claims that it has stopped."""
    job = await world.begun()
    await _stop(world, job, how)
    await world.said("I can't stop this job from here", thread_ts=job.ts)
    await world.steered(job.id, STOP_WORDS)
    assert world.job_api.cancelled == []
    assert "Stopped" not in "".join(message.text for message in world.messages(thread_ts=job.ts))


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


async def test_a_probable_stop_is_asked_about_and_not_sent(world: WaysInWorld) -> None:
    """Privately, with the correct word."""
    job = await world.begun()
    said = await world.ana.say("docs", "!stpo", thread_ts=job.ts)
    await world.private_message(world.ana, "Did you mean `!stop`?")
    await world.ana.say("docs", "And the manual", thread_ts=job.ts)
    await world.steered(job.id, "And the manual")
    assert not said.reactions


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


async def test_a_sentence_about_a_stop_is_a_follow_up(world: WaysInWorld) -> None:
    """Control words stand alone."""
    job = await world.begun()
    await world.ana.say("docs", "!stop is missing in the manual", thread_ts=job.ts)
    await world.steered(job.id, "!stop is missing in the manual")
