"""Posts in a thread when a follow-up and its job's changes come in an unexpected order."""

from dataclasses import dataclass

import pytest
from support.fakes.ports import FakeJobApi
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.requests.request import RequestKind
from bot.domain.threads.thread import ThreadState
from bot.errors import JobApiBusy, JobApiError, JobApiNotAllowed, JobApiUncertain, JobApiUnreachable
from bot.jobapi.models import Job, PromptCall
from bot.notices.job import JobFailed, JobFinished
from bot.notices.notice import Reaction
from bot.notices.requests import RequestUncertain
from bot.store.request_queue import ClaimedRequest

LINK, OTHER = "https://example.org/pull/1", "https://example.org/pull/2"
DAY = 24 * 3600.0


class OneAnswerAKey(FakeJobApi):
    """Executes a repeated key once, and repeats its first answer."""

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[str, Job] = {}

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        if call.idempotency_key not in self._answers:
            job = await super().send_message(project, job_id, call)
            self._answers[call.idempotency_key] = job
        return self._answers[call.idempotency_key]


class AtOnce(FakeJobApi):
    """Carries out each message before it answers."""

    def __init__(self, status: str) -> None:
        super().__init__()
        self.status = status

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        job = self.jobs[job_id]
        await super().send_message(project, job_id, call)
        self.show(job_id, self.status, job.pr_link)
        return self.jobs[job_id]


class ReadOnly(FakeJobApi):
    """Allows reading jobs, and answers every message with the same error."""

    error: JobApiError = JobApiNotAllowed("403", status=403)

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        raise self.error


@dataclass
class Claimed:
    """A follow-up that was claimed and is not yet sent."""

    world: CoreWorld
    item: ClaimedRequest
    at: float

    async def send(self) -> None:
        await self.world.request_sender.process(self.item, self.at)


async def claimed(world: CoreWorld, ts: str) -> Claimed:
    await world.reply(ts, "more", "5.1")
    await world.step(world.outbox)
    world.clock.advance(1.2)
    at = world.clock.monotonic()
    (item,) = await world.request_sender.claim(10)
    return Claimed(world, item, at)


async def ended(world: CoreWorld) -> str:
    """A job that has ended with a link, as its thread knows."""
    ts = await world.started()
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(30)
    assert world.chat.said(ts) == ["job_started", "job_finished"]
    return ts


async def state(world: CoreWorld, ts: str) -> ThreadState:
    return (await world.thread(ts)).state


async def fine_time(world: CoreWorld, seconds: int) -> None:
    """Lets time pass in small steps, so that nothing is overtaken."""
    for _ in range(seconds):
        world.clock.advance(1.0)
        await world.settle()


@pytest.mark.parametrize("is_told", [False, True])
async def test_a_repeated_answer_does_not_set_the_job_back(world: CoreWorld, *, is_told: bool) -> None:
    """Its sender dies; the job works and ends before it is sent again and gets the first answer. The end is told once,
    before that or after it.
    """
    world.job_api, world.idempotent = OneAnswerAKey(), True
    world.assemble()
    ts = await ended(world)
    follow_up = await claimed(world, ts)
    await world.job_api.send_message("docs", "job-1", PromptCall("more", follow_up.item.request.id))
    world.clock.advance(3)
    await world.step(world.job_poller)
    world.job_api.show("job-1", "completed", LINK)
    if is_told:
        await fine_time(world, 10)
    world.clock.advance(31)
    world.restart("two")
    await world.pass_time(60)
    assert world.chat.said(ts) == ["job_started", "job_finished", "job_active_again", "job_finished"]
    assert world.job_api.messages["job-1"] == ["more"]


async def test_an_earlier_end_does_not_hide_that_of_a_follow_up_in_doubt(world: CoreWorld) -> None:
    ts = await world.started()
    await world.pass_time(30)
    follow_up = await claimed(world, ts)
    world.job_api.show("job-1", "completed", LINK)
    world.clock.advance(2.5)
    await world.step(world.job_poller)
    world.job_api.after = [JobApiUncertain("timeout")]
    await follow_up.send()
    await world.pass_time(60)
    world.job_api.show("job-1", "completed", OTHER)
    await world.pass_time(100)
    assert world.chat.said(ts) == [
        "job_started",
        "job_finished",
        "request_uncertain",
        "job_active_again",
        "job_finished",
    ]


async def test_an_answer_with_the_jobs_previous_state_is_not_an_end(world: CoreWorld) -> None:
    """Work on the message begins later: the answer still shows the end of earlier work."""
    ts = await world.started()
    await world.pass_time(30)
    world.job_api.show("job-1", "completed", LINK)
    follow_up = await claimed(world, ts)
    world.job_api.show("job-1", "completed", LINK)
    world.job_api.outdated_answers = [world.job_api.jobs["job-1"]]
    await follow_up.send()
    await world.pass_time(60)
    world.job_api.show("job-1", "completed", OTHER)
    await world.pass_time(100)
    assert world.chat.said(ts) == ["job_started", "job_finished", "job_active_again", "job_finished"]
    job = (await state(world, ts)).job
    assert job is not None
    assert job.pr_link == OTHER


@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_an_end_that_the_answer_to_the_message_tells_is_posted(world: CoreWorld, status: str) -> None:
    world.job_api = AtOnce(status)
    world.assemble()
    ts = await world.started()
    world.job_api.show("job-1", status, LINK)
    await world.pass_time(300)
    end = {"completed": "job_finished", "failed": "job_failed"}[status]
    for at in ("5.1", "5.2"):
        await world.reply(ts, "more", at, BEN)
        await world.pass_time(300)
    assert world.chat.said(ts) == ["job_started", end, end, end]
    ends = [*world.chat.posted_as(JobFinished), *world.chat.posted_as(JobFailed)]
    assert [each.person_id for each in ends] == ["", "UBEN", "UBEN"]


async def test_an_end_that_the_answer_tells_is_not_posted_if_work_begins_soon(world: CoreWorld) -> None:
    world.job_api = AtOnce("completed")
    world.hold_back = 5.0
    world.assemble()
    ts = await world.started()
    world.job_api.show("job-1", "completed", LINK)
    await fine_time(world, 30)
    await world.reply(ts, "more", "5.1")
    await fine_time(world, 4)
    world.job_api.show("job-1", "active", LINK)
    await fine_time(world, 30)
    world.job_api.show("job-1", "completed", LINK)
    await fine_time(world, 30)
    assert world.chat.said(ts) == ["job_finished", "job_active_again", "job_finished"]


async def test_an_end_that_the_answer_tells_can_be_that_of_a_stop(world: CoreWorld) -> None:
    world.job_api = AtOnce("completed")
    world.job_api.cancels = True
    world.hold_back = 5.0
    world.assemble()
    ts = await world.started()
    world.job_api.show("job-1", "completed", LINK)
    await fine_time(world, 30)
    await world.reply(ts, "more", "5.1")
    await fine_time(world, 3)
    thread = await world.thread(ts)
    await world.press(RequestKind.STOP, BEN, "", key="stop", thread_id=thread.id)
    await fine_time(world, 30)
    assert world.chat.said(ts) == ["job_finished", "job_stopped"]


async def test_a_failed_poll_does_not_outdate_an_answer(world: CoreWorld) -> None:
    ts = await ended(world)
    follow_up = await claimed(world, ts)
    world.clock.advance(2.5)
    world.job_api.faults = [JobApiUncertain("502")]
    await world.step(world.job_poller)
    await follow_up.send()
    world.clock.advance(1.5)
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(60)
    assert world.chat.said(ts) == ["job_started", "job_finished", "job_active_again", "job_finished"]


async def test_an_outage_at_the_last_poll_does_not_age_until_the_next_reply(world: CoreWorld) -> None:
    ts = await world.started()
    world.job_api.show("job-1", "completed")
    await world.pass_time(100)
    world.job_api.faults = [JobApiUnreachable("down") for _ in range(99)]
    await world.pass_time(200)
    world.clock.advance(4 * DAY)
    world.job_api.faults = [JobApiBusy("429", retry_after=5.0)]
    await world.reply(ts, "more", "5.1")
    await world.pass_time(30)
    assert world.chat.said(ts) == ["job_started", "job_finished", "job_active_again"]
    assert world.chat.reactions == {"5.1": Reaction.ACCEPTED}


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (JobApiNotAllowed("403", status=403), "access_denied"),
        (JobApiBusy("429", retry_after=None), "outage_started"),
        (JobApiBusy("429", retry_after=3600.0), "outage_started"),
    ],
    ids=["403", "429", "429 for an hour"],
)
async def test_an_outage_that_only_messages_meet_is_reported_once(
    world: CoreWorld, error: JobApiError, word: str
) -> None:
    """The job can be read all the time, which does not end the request's problem."""
    job_api = ReadOnly()
    job_api.error = error
    world.job_api = job_api
    world.assemble()
    ts = await world.started()
    await world.reply(ts, "more", "5.1")
    await fine_time(world, 200)
    assert world.chat.said(ts) == ["job_started", word]
    assert world.chat.reactions == {"5.1": Reaction.RECORDED}
    assert (await state(world, ts)).failure.problem is None


async def test_a_follow_up_never_answered_is_reported_and_handed_back(world: CoreWorld) -> None:
    """A server that honours keys is asked for long, but not forever: the next request is waiting."""
    world.idempotent = True
    world.assemble()
    ts = await world.started()
    job_api = ReadOnly()
    job_api.error = JobApiUncertain("500")
    job_api.jobs = world.job_api.jobs
    world.job_api = job_api
    world.assemble()
    await world.reply(ts, "poison", "5.1")
    await world.reply(ts, "next", "5.2")
    await world.pass_time(300)
    assert world.chat.said(ts) == ["job_started", "outage_started"]
    world.clock.advance(3 * DAY)
    await world.pass_time(100)
    assert world.chat.said(ts)[:3] == ["job_started", "outage_started", "request_uncertain"]
    assert world.chat.reactions["5.1"] is Reaction.PROBLEM
    request = world.chat.posted_as(RequestUncertain)[0].request.request_id
    await world.press_send_again(ANA, request, key="press-1")
    await world.pass_time(100)
    assert world.chat.said(ts).count("request_uncertain") == 1
