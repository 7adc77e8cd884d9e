"""Details of a job beyond the specification, from the poll to the thread: posted once, shown on request."""

import pytest
from support.fakes.ports import FakeRequesters
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.jobs.details import digest
from bot.domain.requests.request import RequestKind
from bot.errors import JobApiUncertain, JobApiUnreachable
from bot.jobapi.models import JobDetails, PlanStep, StepStatus
from bot.notices.answers import AnswerMissing, AnswerRequested
from bot.notices.job import JobFailed, JobFinished, QuestionAsked

LINK = "https://git.example/1"
LONG = "All of it. " * 500


async def finished(world: CoreWorld, details: JobDetails) -> str:
    """A job that ended with these details; returns its thread's ts."""
    ts = await world.started()
    world.job_api.show("job-1", "completed", LINK, details)
    await world.pass_time(30)
    return ts


async def press(world: CoreWorld, ts: str, answer: str, key: str = "click") -> AnswerRequested:
    thread = await world.thread(ts)
    await world.press(RequestKind.SHOW_ANSWER, BEN, digest(answer), key=key, thread_id=thread.id)
    await world.settle()
    return world.chat.private_as(AnswerRequested)[-1]


async def test_an_answer_is_posted_with_its_end_only(world: CoreWorld) -> None:
    ts = await finished(world, JobDetails(summary="Done.", revision="a1"))
    assert world.chat.said(ts) == ["job_started", "job_finished"]
    (end,) = world.chat.posted_as(JobFinished)
    assert end.report is not None
    assert end.report.answer is not None
    assert end.report.answer.text == "Done."


async def test_a_whole_answer_is_fetched_on_request(world: CoreWorld) -> None:
    ts = await finished(world, JobDetails(summary=LONG))
    told = await press(world, ts, LONG)
    assert (told.person_id, told.text, told.missing) == ("UBEN", LONG, None)


async def test_a_whole_answer_is_never_stored(world: CoreWorld) -> None:
    ts = await finished(world, JobDetails(summary=LONG))
    await press(world, ts, LONG)
    await press(world, ts, LONG)
    assert len(world.chat.private_as(AnswerRequested)) == 1, "the same click, delivered again"
    assert LONG not in repr((await world.thread(ts)).state)


async def test_a_deleted_answer_is_explained(world: CoreWorld) -> None:
    ts = await finished(world, JobDetails(summary=LONG))
    world.job_api.show("job-1", "completed", LINK, JobDetails(summary="Another one."))
    assert (await press(world, ts, LONG, "a")).missing is AnswerMissing.NEWER
    world.job_api.show("job-1", "completed", LINK)
    assert (await press(world, ts, LONG, "b")).missing is AnswerMissing.GONE
    world.job_api.faults = [JobApiUnreachable("down")]
    assert (await press(world, ts, LONG, "c")).missing is AnswerMissing.NOT_NOW
    del world.job_api.jobs["job-1"]
    assert (await press(world, ts, LONG, "d")).missing is AnswerMissing.GONE


async def test_the_reason_of_a_failure_is_shown(world: CoreWorld) -> None:
    await world.started()
    world.job_api.show("job-1", "failed", None, JobDetails(reason="The model's key is not accepted."))
    await world.pass_time(30)
    (failed,) = world.chat.posted_as(JobFailed)
    assert failed.report is not None
    assert failed.report.reason == "The model's key is not accepted."


async def test_a_question_mentions_its_author_and_the_next_reply_answers_it(
    world: CoreWorld,
) -> None:
    ts = await finished(world, JobDetails(summary="Done."))
    await world.reply(ts, "shorter", "5.1", BEN)
    await world.pass_time(5)
    world.job_api.show("job-1", "active", None, JobDetails(question="Which?"))
    await world.pass_time(60)
    assert world.chat.posted_as(QuestionAsked) == [QuestionAsked("Which?", person_id="UBEN")]
    assert (await world.thread(ts)).state.work.question
    await world.reply(ts, "the first", "6.1", ANA)
    await world.pass_time(60)
    assert world.job_api.messages["job-1"] == ["shorter", "the first"]
    assert not (await world.thread(ts)).state.work.question
    assert len(world.chat.posted_as(QuestionAsked)) == 1


async def test_a_fast_changing_plan_edits_the_card_rarely(
    world: CoreWorld,
) -> None:
    await world.started()
    before = world.chat.calls.count("update_card")
    for number in range(30):
        plan = (PlanStep(title=f"Step {number}", status=StepStatus.IN_PROGRESS),)
        world.job_api.show("job-1", "active", None, JobDetails(plan=plan, activity=f"At {number}"))
        await world.pass_time(1)
    edits = world.chat.calls.count("update_card") - before
    assert 2 <= edits <= 30 / 4 + 1
    await world.pass_time(60)
    settled = world.chat.calls.count("update_card")
    await world.pass_time(300)
    assert world.chat.calls.count("update_card") == settled


@pytest.fixture
def with_requesters(world: CoreWorld) -> CoreWorld:
    """A world whose job API accepts requesters."""
    world.idempotent, world.requesters = True, FakeRequesters()
    return world.assemble()


async def test_the_requester_is_sent_with_each_request(with_requesters: CoreWorld) -> None:
    ts = await with_requesters.started()
    await with_requesters.reply(ts, "shorter", "5.1", BEN)
    await with_requesters.pass_time(5)
    assert [each.id for each in with_requesters.job_api.requesters if each] == ["UANA", "UBEN"]


async def test_a_retried_request_sends_the_same_requester(with_requesters: CoreWorld) -> None:
    with_requesters.job_api.after = [JobApiUncertain("cut"), JobApiUncertain("cut")]
    await with_requesters.started()
    await with_requesters.pass_time(60)
    assert len(with_requesters.job_api.requesters) == 3
    assert len(set(with_requesters.job_api.requesters)) == 1
    assert with_requesters.requesters is not None
    assert with_requesters.requesters.asked == ["UANA"]


async def test_the_requester_is_sent_only_to_job_apis_that_accept_it(world: CoreWorld) -> None:
    await world.started()
    assert world.job_api.requesters == [None]


async def test_a_question_of_a_muted_job_is_posted_after_unmute_however_late(world: CoreWorld) -> None:
    """The job has ended and is not polled any more, and the first poll fails."""
    ts = await world.started()
    thread = await world.thread(ts)
    await world.press(RequestKind.MUTE, ANA, "", key="mute", thread_id=thread.id)
    await world.settle()
    world.job_api.show("job-1", "completed", details=JobDetails(question="Which guide?"))
    await world.pass_time(9_999)
    assert world.chat.posted_as(QuestionAsked) == []
    world.job_api.faults = [JobApiUnreachable("down")]
    await world.press(RequestKind.UNMUTE, BEN, "", key="unmute", thread_id=thread.id)
    await world.pass_time(60)
    assert [asked.question for asked in world.chat.posted_as(QuestionAsked)] == ["Which guide?"]
    polls = world.job_api.polls
    await world.pass_time(999)
    assert world.job_api.polls == polls
