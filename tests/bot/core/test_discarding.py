"""A failed job's partial work is discarded once, and only if nobody continues it."""

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.requests.audit import AuditAction
from bot.domain.requests.request import Action, Person, RejectionReason, RequestKind, WayIn
from bot.errors import JobApiBusy, JobApiError, JobApiRejected, JobApiUncertain, JobApiUnreachable, JobGone
from bot.jobapi.models import JobDetails, PartialWork
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.job import JobFailed
from bot.notices.notice import Reaction
from bot.notices.requests import RequestRejected

JOB = "job-1"
HALF = JobDetails(reason="out of credit", partial_work=PartialWork(files=3))
DAY = 24 * 3600.0


def at(seconds: float) -> str:
    return f"{1_700_000_100 + seconds:.6f}"


@pytest.fixture
async def ts(world: CoreWorld) -> str:
    """A job that failed after it had changed three files."""
    ts = await world.started()
    await world.show("failed", details=HALF, wait=60)
    return ts


async def discard(
    world: CoreWorld, ts: str, *, person: Person = ANA, key: str = "discard", said: str = "", wait: float | None = None
) -> None:
    """Somebody discards it: recorded and prepared."""
    thread = await world.thread(ts)
    way_in = WayIn.WORD if said else WayIn.BUTTON
    action = Action(person, RequestKind.DISCARD, key, channel_id="C1", thread_id=thread.id, at=said, way_in=way_in)
    await world.service.act(action)
    await world.step(world.request_preparer)
    world.clock.advance(1.5)
    await world.wait(wait)


def private_answers(world: CoreWorld) -> list[tuple[str, ActionAnswer]]:
    return [(message.person_id, message.answer) for message in world.chat.private_as(ActionAnswered)]


async def kept(world: CoreWorld, ts: str) -> int:
    """The number of files on the card."""
    return (await world.thread(ts)).state.work.progress.partial_files


async def test_partial_work_is_mentioned_with_the_failure_and_on_the_card(world: CoreWorld, ts: str) -> None:
    (failed,) = world.chat.posted_as(JobFailed)
    assert failed.report is not None
    assert (failed.report.partial_files, await kept(world, ts)) == (3, 3)


async def test_discarding_is_confirmed_once_to_the_person(world: CoreWorld, ts: str) -> None:
    """Nobody else is told: the card no longer shows the work, and the failure stays."""
    await discard(world, ts, person=BEN, said=at(1), wait=60)
    assert world.job_api.discarded == [JOB]
    assert private_answers(world) == [(BEN.id, ActionAnswer.DISCARDED)]
    assert world.chat.reactions[at(1)] is Reaction.ACCEPTED
    assert await kept(world, ts) == 0
    assert world.chat.said() == ["job_started", "job_failed"]
    noted = await world.store.transact(lambda tx: tx.audit.read(since=0.0, until=1e11, after=0, limit=50))
    assert [each.entry.person for each in noted if each.entry.action is AuditAction.DISCARDED] == [BEN]


async def test_the_next_reply_after_discarding_starts_afresh(world: CoreWorld, ts: str) -> None:
    """A waiting reply is sent after the discard, however late that was."""
    world.job_api.faults = [JobApiUnreachable("down")] * 3
    await discard(world, ts)
    await world.reply(ts, "Continue", at(2), wait=120)
    assert (world.job_api.discarded, world.job_api.messages[JOB]) == ([JOB], ["Continue"])
    assert private_answers(world) == [(ANA.id, ActionAnswer.DISCARDED)]


async def test_a_second_discard_finds_nothing(world: CoreWorld, ts: str) -> None:
    await discard(world, ts, key="one")
    await discard(world, ts, key="two", person=BEN)
    await discard(world, ts, key="two", person=BEN, wait=60)
    assert world.job_api.discarded == [JOB]
    assert private_answers(world) == [(ANA.id, ActionAnswer.DISCARDED), (BEN.id, ActionAnswer.NOTHING_TO_DISCARD)]


async def test_work_the_agent_resumes_is_not_discarded(world: CoreWorld, ts: str) -> None:
    """A reply was sent before."""
    await world.reply(ts, "Continue", at(1), wait=5)
    assert world.job_api.messages[JOB] == ["Continue"]
    await discard(world, ts, wait=60)
    assert (world.job_api.discarded, private_answers(world)) == ([], [(ANA.id, ActionAnswer.DISCARD_TOO_LATE)])


async def test_a_follow_up_by_another_client_is_detected_from_the_answer(world: CoreWorld, ts: str) -> None:
    """The last poll was before it; from then on, the job is polled again."""
    world.job_api.show(JOB, "active", details=HALF)
    await discard(world, ts, wait=30)
    assert private_answers(world) == [(ANA.id, ActionAnswer.DISCARD_TOO_LATE)]
    await world.show("failed", details=JobDetails(reason="again"), wait=60)
    assert (await world.thread(ts)).state.job == world.job_api.jobs[JOB].__class__(
        **{**vars(world.job_api.jobs[JOB]), "details": None}
    )


async def test_a_job_api_without_details_is_not_asked_to_discard(world: CoreWorld) -> None:
    ts = await world.started()
    await world.show("failed", wait=60)
    await discard(world, ts, wait=30)
    assert (world.job_api.discarded, private_answers(world)) == ([], [(ANA.id, ActionAnswer.NOTHING_TO_DISCARD)])


@pytest.mark.first(refusal=1)
@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (JobApiRejected("405", words="no such call"), RejectionReason.API),
        (JobGone("404"), RejectionReason.NOT_FOUND),
    ],
    ids=["refused", "not found"],
)
async def test_a_refused_discard_shows_its_reason(
    world: CoreWorld, ts: str, refusal: JobApiError, reason: RejectionReason
) -> None:
    await discard(world, ts)
    world.job_api.faults = [refusal] * 9
    await world.pass_time(300)
    assert private_answers(world) == []
    assert [rejected.reason for rejected in world.chat.posted_as(RequestRejected)] == [reason]
    assert world.job_api.discarded == []
    assert await kept(world, ts) == 3


@pytest.mark.first(fault=1)
@pytest.mark.parametrize(
    "fault", [JobApiUnreachable("down"), JobApiBusy("429", retry_after=30.0), JobApiUncertain("timeout")], ids=str
)
async def test_a_discard_is_retried_while_the_job_api_is_away(world: CoreWorld, ts: str, fault: JobApiError) -> None:
    world.job_api.faults = [fault] * 3
    await discard(world, ts, wait=600)
    assert world.job_api.discarded == [JOB]
    assert private_answers(world) == [(ANA.id, ActionAnswer.DISCARDED)]


async def test_a_discard_whose_answer_was_lost_is_repeated(world: CoreWorld, ts: str) -> None:
    """The first call discarded the work, and there is one post."""
    await discard(world, ts)
    world.job_api.after = [JobApiUncertain("timeout")]
    await world.pass_time(60)
    assert world.job_api.discarded == [JOB, JOB]
    assert private_answers(world) == [(ANA.id, ActionAnswer.DISCARDED)]


async def test_a_follow_up_in_flight_is_sent_before_the_discard(world: CoreWorld, ts: str) -> None:
    """The work that it continues is not discarded meanwhile."""
    await world.reply(ts, "Continue", at(1))
    await world.step(world.request_preparer)
    world.clock.advance(1.5)
    claim = await world.claim(world.request_sender)
    await discard(world, ts)
    assert await world.request_sender.claim(10) == []
    await claim.process(wait=30)
    assert (world.job_api.discarded, world.job_api.messages[JOB]) == ([], ["Continue"])
    assert private_answers(world) == [(ANA.id, ActionAnswer.DISCARD_TOO_LATE)]
