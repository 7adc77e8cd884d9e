"""A job has ended and is no longer polled; then somebody replies while the job API is out of reach."""

from support.worlds.core_world import CoreWorld

from bot.errors import JobApiNotAllowed, JobApiUnreachable

DAY = 24 * 3600.0


async def ended(world: CoreWorld) -> str:
    ts = await world.started()
    world.job_api.show("job-1", "failed")
    await world.pass_time(400)
    return ts


async def test_the_end_of_an_outage_is_noticed_before_the_reply_is_retried(world: CoreWorld) -> None:
    ts = await ended(world)
    world.job_api.faults = [JobApiUnreachable("down"), JobApiNotAllowed("401", status=401)]
    await world.reply(ts, "more", "5.1")
    world.clock.advance(2.0)
    await world.step(world.request_sender)
    world.clock.advance(3.0)
    await world.step(world.job_poller)
    await world.pass_time(45)
    thread = await world.thread(ts)
    assert world.chat.said(ts)[:4] == ["job_started", "job_failed", "access_denied", "outage_ended"]
    assert world.chat.cards[thread.id].state.failure.problem is None


async def test_a_failure_of_the_reply_alone_is_reported_and_is_no_outage(world: CoreWorld) -> None:
    ts = await ended(world)
    world.job_api.faults = [JobApiNotAllowed("401", status=401)]
    await world.reply(ts, "more", "5.1")
    await world.pass_time(45)
    thread = await world.thread(ts)
    assert world.job_api.messages == {}
    assert world.chat.said(ts) == ["job_started", "job_failed", "access_denied"]
    assert world.chat.cards[thread.id].state.failure.problem is None


async def test_a_follow_up_handed_back_for_its_age_leaves_no_outage_on_the_card(world: CoreWorld) -> None:
    ts = await ended(world)
    world.job_api.faults = [JobApiUnreachable("down") for _ in range(1_000)]
    await world.reply(ts, "more", "5.1")
    await world.pass_time(200)
    world.clock.advance(3 * DAY)
    await world.pass_time(100)
    assert world.chat.said(ts) == ["job_started", "job_failed", "outage_started", "request_rejected"]
    world.job_api.faults = []
    await world.pass_time(100)
    thread = await world.thread(ts)
    assert world.chat.said(ts)[-1] == "outage_ended"
    assert world.chat.cards[thread.id].state.failure.problem is None
