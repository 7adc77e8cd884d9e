"""Slack faults, by the workspace's switches: acknowledged requests are done, and each notice
is posted once, in order.
"""

import pytest
from support.fakes.slack_limits import ANY_NUMBER
from support.servers.slack_faults import CallFault
from support.worlds.app_world import AppWorld

from bot.app.edges import EdgeTimings
from bot.notices.notice import Reaction

pytestmark = [pytest.mark.promise("posted once", "recovery"), pytest.mark.chaos, pytest.mark.either_database]
FINISHED = ("started", "completed")


def lost_answers(world: AppWorld, method: str, seconds: float = 5.0) -> list[CallFault]:
    """Yields every way in which the outcome of a call stays unknown."""
    faults = world.workspace.faults
    return [
        faults.server_error(method=method),
        faults.server_error(applied=True, method=method),
        faults.server_error(applied=True, status=503, method=method),
        faults.drop(method=method),
        faults.drop(applied=True, method=method),
        faults.delay(seconds, applied=True, method=method),
    ]


@pytest.mark.full
async def test_each_message_is_posted_once_though_its_answer_was_lost(world: AppWorld) -> None:
    prompts = [f"Task {number}" for number in range(6)]
    world.edge_timings = EdgeTimings(slack_call=1.0, slack_limits=ANY_NUMBER, hold_back=0.0)
    await world.start()
    faults = lost_answers(world, "chat.postMessage")
    for prompt in prompts:
        await world.ask(prompt)
    async with world.hurrying():
        for prompt in prompts:
            await world.card(prompt)
        await world.fake_job_api.until(lambda: len(world.fake_job_api.created) == len(prompts))
        for prompt in prompts:
            await world.until_said(prompt, "started")
    faults += lost_answers(world, "chat.postMessage") + lost_answers(world, "chat.update")
    world.complete(*(world.fake_job_api.job_of(prompt) for prompt in prompts))
    async with world.hurrying():
        for prompt in prompts:
            await world.until_said(prompt, *FINISHED)
        await world.settled()
    assert [fault.hits for fault in faults] == [1] * len(faults)
    await world.check()


@pytest.mark.full
async def test_silent_connections_are_replaced(world: AppWorld) -> None:
    """Nothing gets through without any sign: only unanswered pings show it."""
    world.edge_timings = EdgeTimings(slack_ping=1.0, slack_limits=ANY_NUMBER, hold_back=0.0)
    await world.start()
    (job,) = await world.begin("First")
    world.workspace.blackhole_connections()
    reply = await world.reply("First", "Meanwhile")
    await world.until_steered(job, "Meanwhile")
    await world.until_marked(reply, Reaction.ACCEPTED)
    await world.check()


@pytest.mark.full
async def test_envelopes_are_duplicated_reordered_lost_and_unacknowledged(world: AppWorld) -> None:
    await world.start()
    faults, jobs = world.workspace.faults, []
    switches = [faults.envelope("duplicate", "slash_commands"), faults.envelope("drop_ack", "slash_commands")]
    jobs += await world.begin("Doubled")
    await world.ask("Its ack is lost")
    world.asked.append("Its ack is lost")  # Slack shows its sender a failure, but it was recorded, and is done
    await world.until_said("Its ack is lost", "started")
    switches += [faults.envelope("reorder", "events_api"), faults.envelope("duplicate", "events_api", 2)]
    await world.reply("Doubled", "First")
    await world.reply("Doubled", "Second")
    await world.fake_job_api.until(lambda: world.fake_job_api.follow_ups(jobs[0]) == ["First", "Second"])
    switches += [faults.envelope("drop_ack", "events_api", 2), faults.envelope("lose", "events_api")]
    await world.reply("Doubled", f"@{world.workspace.app.name} Third")
    world.replied[-1] = "Third"
    await world.reply("Doubled", "Fourth")
    await world.fake_job_api.until(lambda: world.fake_job_api.follow_ups(jobs[0])[2:] == ["Third", "Fourth"])
    await world.workspace.deliveries.settled()
    await world.settled()
    assert all(switch.hits for switch in switches)
    await world.check()


@pytest.mark.full
async def test_a_closed_channel_affects_only_itself(world: AppWorld) -> None:
    """Archived, removed, or refusing: each thread's fault is kept and reported, and the others continue."""
    await world.start()
    world.workspace.channels.add_bot("leads")
    (spared,) = await world.begin("Spared")
    (archived,) = await world.begin("Archived", channel="partners")
    (private,) = await world.begin("Private", channel="leads")
    (public,) = await world.begin("Public", channel="general")
    world.workspace.channels.archive("partners")
    world.workspace.channels.remove_bot("leads")
    world.workspace.channels.remove_bot("general")
    world.complete(archived, private, public)
    world.complete(spared)
    await world.until_said("Spared", *FINISHED, seconds=15)
    await world.until_said("Public", *FINISHED, channel="general")
    await world.settled()
    given_up = await world.sql("SELECT key, problem FROM notices WHERE state = 'given_up' AND delivery = 'post'")
    assert {reason for _, reason in given_up} == {"is_archived", "channel_not_found"}
    assert all(f"pull/{job}" in world.private_text("ana") for job in (archived, private))
    world.workspace.channels.unarchive("partners")
    await world.reply("Archived", "Go on", channel="partners")
    await world.until_said("Archived", "started", "active", channel="partners")
    await world.check()


async def test_slack_is_away_and_comes_back(world: AppWorld) -> None:
    await world.start()
    jobs = await world.begin("First", "Second", "Third")
    await world.workspace.begin_outage()
    world.complete(jobs[0])
    world.fake_job_api.show(jobs[1], "failed")
    polls = len(world.fake_job_api.polls)
    await world.fake_job_api.until(lambda: len(world.fake_job_api.polls) >= polls + 3)
    world.fake_job_api.show(jobs[2], "archived")
    await world.workspace.people["ana"].say("docs", "still here", thread_ts=world.card_ts("First"))
    world.replied.append("still here")
    await world.fake_job_api.until(lambda: len(world.fake_job_api.polls) >= polls + 4)
    await world.workspace.end_outage()
    await world.hurry()
    await world.until_said("Second", "started", "failed")
    await world.until_said("Third", "started", "archived")
    await world.fake_job_api.until(lambda: world.fake_job_api.follow_ups(jobs[0]) == ["still here"])
    await world.until_said("First", *FINISHED, "active")
    await world.workspace.changes.wait_for(lambda: len(world.workspace.socket_mode.connections) == 2)
    await world.begin("Afterwards")
    await world.check()
