"""A stop overtakes waiting requests, is done when the job has ended, and its outcome is posted once."""

from collections.abc import Callable

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.jobs.job import Job
from bot.domain.jobs.stopping import STOP_WORDS
from bot.domain.notices.messages import ActionAnswer, ActionAnswered, Reaction
from bot.domain.notices.posts import AgentAskedToStop, JobFinished, JobStillStopping, JobStopped
from bot.domain.requests.request import Action, Person, Requester, RequestKind, RequestState
from bot.errors import JobApiRejected, JobApiUncertain, JobApiUnreachable, JobGone

JOB, LINK = "job-1", "https://example.org/pull/1"


def at(seconds: float) -> str:
    return f"{1_700_000_100 + seconds:.6f}"


@pytest.fixture
async def ts(world: CoreWorld) -> str:
    """A running job, at a job API that can cancel."""
    world.job_api.cancels = True
    return await world.started()


async def stop(world: CoreWorld, ts: str, *, person: Person = ANA, key: str = "stop", said: str = "") -> None:
    """Somebody stops the job: recorded and prepared."""
    thread = await world.thread(ts)
    await world.service.act(
        Action(person, RequestKind.STOP, key, channel_id="C1", thread_id=thread.id, message_ts=said)
    )
    await world.step(world.request_preparer)
    world.clock.advance(1.5)


def posts(world: CoreWorld) -> list[str]:
    """The posts in the thread, without the card."""
    return [message.kind for message in world.chat.messages if message.kind != "card_changed"]


def private_answers(world: CoreWorld) -> list[ActionAnswer]:
    return [message.answer for message in world.chat.private_as(ActionAnswered)]


class Slow:
    """A job API that accepts a cancel at once, and ends the job only when told to."""

    def __init__(self, world: CoreWorld) -> None:
        self._job_api, self.keys = world.job_api, list[str]()
        world.job_api.cancel = self.cancel  # type: ignore[method-assign]  # the fake's own

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        self.keys.append(idempotency_key)
        return self._job_api.jobs[job_id]


async def test_a_stop_cancels_a_cancellable_job(world: CoreWorld, ts: str) -> None:
    """Its end is posted as that of the stop, and not also as an ordinary one."""
    await stop(world, ts, person=BEN, said=at(1))
    await world.pass_time(60)
    assert world.job_api.cancelled == [JOB]
    assert posts(world) == ["job_started", "job_stopped"]
    (message,) = [each.message for each in world.chat.messages if isinstance(each.message, JobStopped)]
    assert (message.person_id, message.link) == (BEN.id, "")
    assert world.chat.reactions[at(1)] is Reaction.ACCEPTED


async def test_a_pull_request_from_before_the_stop_is_reported_with_its_end(world: CoreWorld, ts: str) -> None:
    """One that comes late is posted as usual."""
    world.job_api.show(JOB, "active", LINK)
    await stop(world, ts)
    await world.pass_time(60)
    (message,) = [each.message for each in world.chat.messages if isinstance(each.message, JobStopped)]
    assert (message.link, message.new) == (LINK, True)
    assert posts(world) == ["job_started", "job_stopped"]


async def test_a_stop_overtakes_waiting_replies_which_are_sent_after_it(world: CoreWorld, ts: str) -> None:
    """Requests that wait, and those that arrive during the stop, are sent once the job has ended."""
    slow = Slow(world)
    await world.reply(ts, "Before", at(1))
    await stop(world, ts)
    await world.settle()
    await world.reply(ts, "Meanwhile", at(2))
    await world.pass_time(5)
    assert len(slow.keys) > 1
    assert len(set(slow.keys)) == len(slow.keys), "the same key would get the same answer"
    assert world.job_api.messages[JOB] == []
    world.job_api.show(JOB, "completed")
    await world.pass_time(5)
    assert world.job_api.messages[JOB] == ["Before", "Meanwhile"]
    assert posts(world)[:2] == ["job_started", "job_stopped"]
    world.job_api.show(JOB, "completed", LINK)
    await world.pass_time(60)
    assert posts(world)[-1] == "job_finished"
    (message,) = [each.message for each in world.chat.messages if isinstance(each.message, JobFinished)]
    assert not message.again, "it was stopped before, and not finished"


async def test_a_stop_waits_for_a_request_in_flight(world: CoreWorld, ts: str) -> None:
    """It stops work that began before it."""
    await world.reply(ts, "Before", at(1))
    await world.step(world.request_preparer)
    world.clock.advance(1.5)
    claimed_at = world.clock.monotonic()
    (item,) = await world.request_sender.claim(10)
    await stop(world, ts)
    assert await world.request_sender.claim(10) == []
    await world.request_sender.process(item, claimed_at)
    await world.pass_time(5)
    assert (world.job_api.messages[JOB], world.job_api.cancelled) == (["Before"], [JOB])


async def test_an_end_polled_first_is_reported_as_stopped(world: CoreWorld, ts: str) -> None:
    """Even before the cancel is answered."""
    await stop(world, ts)
    claimed_at = world.clock.monotonic()
    (item,) = await world.request_sender.claim(10)
    world.job_api.show(JOB, "completed", LINK)
    world.clock.advance(5)
    await world.step(world.job_poller)
    await world.request_sender.process(item, claimed_at)
    await world.pass_time(60)
    assert posts(world) == ["job_started", "job_stopped"]


async def test_a_stop_survives_a_kill(world: CoreWorld, ts: str) -> None:
    """A cancel is safe to repeat, so nobody is asked."""
    await stop(world, ts)
    await world.request_sender.claim(10)
    world.restart("two")
    await world.pass_time(60)
    assert world.job_api.cancelled
    assert posts(world) == ["job_started", "job_stopped"]


async def test_a_cancel_in_doubt_is_repeated(world: CoreWorld, ts: str) -> None:
    """However the job API handles repeated keys."""
    await stop(world, ts)
    world.job_api.after = [JobApiUncertain("timeout")]
    await world.pass_time(60)
    assert len(world.job_api.cancelled) >= 1
    assert posts(world) == ["job_started", "job_stopped"]


async def test_a_stop_that_did_not_arrive_does_not_claim_the_end(world: CoreWorld, ts: str) -> None:
    """The job finished while it was out of reach, so there was nothing left to stop."""
    await stop(world, ts)
    world.job_api.faults = [JobApiUnreachable("down")]
    await world.step(world.request_sender)
    world.job_api.show(JOB, "completed", LINK)
    world.clock.advance(4.0)
    await world.step(world.job_poller)
    await world.pass_time(60)
    assert posts(world) == ["job_started", "job_finished"]
    assert world.job_api.cancelled == []
    assert private_answers(world) == [ActionAnswer.NOTHING_TO_STOP]


async def test_an_ended_job_has_nothing_to_stop(world: CoreWorld, ts: str) -> None:
    """Its person is told privately; the job API is not called."""
    world.job_api.show(JOB, "completed")
    await world.pass_time(30)
    await stop(world, ts)
    await world.pass_time(30)
    assert private_answers(world) == [ActionAnswer.NOTHING_TO_STOP]
    assert (world.job_api.cancelled, posts(world)) == ([], ["job_started", "job_finished"])


async def test_two_stops_count_as_one(world: CoreWorld, ts: str) -> None:
    """The second finds the job stopped."""
    await stop(world, ts, key="one")
    await stop(world, ts, key="two", person=BEN)
    await world.pass_time(60)
    assert posts(world) == ["job_started", "job_stopped"]
    assert private_answers(world) == []


async def test_a_stop_without_a_visible_end_blocks_nothing_for_good(world: CoreWorld, ts: str) -> None:
    """It is posted, and so is the end when it comes."""
    slow = Slow(world)
    await stop(world, ts)
    await world.pass_time(60)
    assert posts(world) == ["job_started", "job_still_stopping"]
    asked = len(slow.keys)
    world.job_api.show(JOB, "completed")
    await world.pass_time(60)
    assert posts(world) == ["job_started", "job_still_stopping", "job_stopped"]
    assert len(slow.keys) == asked
    assert [type(each.message) for each in world.chat.messages].count(JobStillStopping) == 1


@pytest.mark.parametrize(
    "refusal", [lambda: JobApiRejected("405"), lambda: JobGone("404")], ids=["refused", "not found"]
)
async def test_a_refused_stop_is_reported_and_the_job_continues(
    world: CoreWorld, ts: str, refusal: Callable[[], Exception]
) -> None:
    """The end is like any other."""
    await stop(world, ts)
    world.job_api.faults = [refusal()]  # type: ignore[list-item]  # they are
    await world.step(world.request_sender)
    await world.pass_time(20)
    world.job_api.show(JOB, "completed", LINK)
    await world.pass_time(60)
    assert posts(world) == ["job_started", "request_rejected", "job_finished"]


async def test_without_cancel_the_agent_is_asked_to_stop(world: CoreWorld, ts: str) -> None:
    """The thread is told that this is all Pagehand can do; the end is posted when it comes."""
    world.job_api.cancels = False
    await world.reply(ts, "Waits", at(1))
    await stop(world, ts, person=BEN)
    await world.step(world.request_sender)
    assert world.job_api.messages[JOB] == [STOP_WORDS]
    await world.pass_time(20)
    assert world.job_api.messages[JOB] == [STOP_WORDS, "Waits"]
    world.job_api.show(JOB, "completed")
    await world.pass_time(60)
    assert posts(world) == ["job_started", "agent_asked_to_stop", "job_finished"]
    (message,) = [each.message for each in world.chat.messages if isinstance(each.message, AgentAskedToStop)]
    assert message.person_id == BEN.id


async def test_an_agent_that_may_have_been_asked_is_not_asked_again(world: CoreWorld, ts: str) -> None:
    """A message that may have arrived is never repeated automatically."""
    world.job_api.cancels = False
    await stop(world, ts)
    world.job_api.after = [JobApiUncertain("timeout")]
    await world.pass_time(60)
    assert world.job_api.messages[JOB] == [STOP_WORDS]
    assert "request_uncertain" in posts(world)


async def test_a_stop_ends_when_no_job_starts(world: CoreWorld) -> None:
    """It waited for the job's id, and there is none."""
    await world.start()
    for worker in (world.request_preparer, world.outbox):
        await world.step(worker)
    claimed_at = world.clock.monotonic()
    (item,) = await world.request_sender.claim(10)
    ts = next(message.ts for message in world.chat.messages)
    await stop(world, ts)
    world.job_api.faults = [JobApiRejected("no")]
    await world.request_sender.process(item, claimed_at)
    await world.pass_time(30)
    assert private_answers(world) == [ActionAnswer.NOTHING_TO_STOP]
    thread = await world.thread(ts)
    (request,) = await world.store.transact(lambda tx: tx.requests.stops(thread.id))
    assert request.state is RequestState.REJECTED
