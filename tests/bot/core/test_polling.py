"""Polls: what they show of a job, how often they are done, through outages, and when finished jobs are deleted."""

import asyncio
import logging
from itertools import count, pairwise
from typing import Any

import pytest
from sqlalchemy import select, update
from support.fakes.ports import FakeRequesters
from support.worlds.core_world import ANA, BEN, CoreWorld
from support.worlds.finished_jobs import fill_activity
from support.worlds.store_world import StoreWorld

from bot.domain.jobs.job import digest
from bot.domain.requests.request import RequestKind
from bot.errors import JobApiNotAllowed, JobApiUncertain, JobApiUnreachable, StoreUnavailable
from bot.jobapi.models import JobDetails, PlanStep, StepStatus
from bot.notices.answers import AnswerMissing, AnswerRequested
from bot.notices.job import QuestionAsked
from bot.scheduler.job_poller import MOST_READ
from bot.scheduler.retention import DAY, RetentionSweeper
from bot.store.schema.tables import polls, threads

LINK = "https://git.example/1"
LONG = "All of it. " * 500


async def finished(world: CoreWorld, details: JobDetails) -> str:
    """A job that ended with these details; returns its thread's ts."""
    ts = await world.started()
    await world.show("completed", LINK, details, wait=30)
    return ts


async def press(world: CoreWorld, ts: str, answer: str, key: str = "click") -> AnswerRequested:
    thread = await world.thread(ts)
    await world.press(RequestKind.SHOW_ANSWER, BEN, digest(answer), key=key, thread_id=thread.id, wait=0)
    return world.chat.private_as(AnswerRequested)[-1]


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
    assert (await press(world, ts, LONG, "a")).missing is AnswerMissing.GONE
    world.job_api.show("job-1", "completed", LINK)
    assert (await press(world, ts, LONG, "b")).missing is AnswerMissing.GONE
    world.job_api.faults = [JobApiUnreachable("down")]
    assert (await press(world, ts, LONG, "c")).missing is AnswerMissing.NOT_NOW
    del world.job_api.jobs["job-1"]
    assert (await press(world, ts, LONG, "d")).missing is AnswerMissing.GONE


async def test_a_question_mentions_its_author_and_the_next_reply_answers_it(
    world: CoreWorld,
) -> None:
    ts = await finished(world, JobDetails(summary="Done."))
    await world.reply(ts, "shorter", "5.1", BEN, wait=5)
    await world.show("active", None, JobDetails(question="Which?"), wait=60)
    assert world.chat.posted_as(QuestionAsked) == [QuestionAsked("Which?", person_id="UBEN")]
    assert (await world.thread(ts)).state.work.question
    await world.reply(ts, "the first", "6.1", ANA, wait=60)
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
        await world.show("active", None, JobDetails(plan=plan, activity=f"At {number}"), wait=1)
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
    await with_requesters.reply(ts, "shorter", "5.1", BEN, wait=5)
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
    await world.press_card(RequestKind.MUTE, ts, key="mute", wait=0)
    await world.show("completed", details=JobDetails(question="Which guide?"), wait=9_999)
    assert world.chat.posted_as(QuestionAsked) == []
    world.job_api.faults = [JobApiUnreachable("down")]
    await world.press_card(RequestKind.UNMUTE, ts, BEN, key="unmute", wait=60)
    assert [asked.question for asked in world.chat.posted_as(QuestionAsked)] == ["Which guide?"]
    polls = world.job_api.polls
    await world.pass_time(999)
    assert world.job_api.polls == polls


READ, KNOWN = True, False


async def kinds(world: CoreWorld) -> list[bool]:
    """Returns of each current claim whether its thread was read; the polls are carried out."""
    claimed_at = world.clock.monotonic()
    items = await world.job_poller.claim(10)
    for item in items:
        await world.job_poller.process(item, claimed_at)
    return [item.poll.thread is not None for item in items]


async def test_a_watch_with_a_remembered_poll_is_polled_without_its_thread(world: CoreWorld) -> None:
    """The first such poll leads to a decision, the next ones do not."""
    await world.started()
    seen = []
    for _ in range(4):
        world.clock.advance(3.0)
        seen += await kinds(world)
    assert seen == [READ, KNOWN, KNOWN, KNOWN]
    assert world.job_api.polls == 4


async def remember(world: CoreWorld, seen: str | None) -> None:
    """Has something else be remembered of all polls."""
    await world.store.transact(lambda tx: tx.session.execute(update(polls).values(seen=seen)))


async def test_a_poll_is_remembered_across_a_restart_unless_it_may_be_decided_differently(world: CoreWorld) -> None:
    await world.started()
    seen = list[bool]()
    for settings in ({}, {}, {"hold_back": 6.0}, {"hold_back": 6.0}):
        world.configure(owner=f"process {len(seen)}", **settings)
        world.clock.advance(3.0)
        seen += await kinds(world)
    assert seen == [READ, KNOWN, READ, KNOWN]


@pytest.mark.promise("isolated")
async def test_what_is_remembered_of_a_poll_may_be_damaged(world: CoreWorld) -> None:
    ts = await world.started()
    world.clock.advance(3.0)
    await kinds(world)
    kept: Any = await world.store.transact(lambda tx: tx.session.rows(select(polls.c.seen)))
    for damaged in ("", "{", kept[0]["seen"][:-9]):
        await remember(world, damaged)
        world.clock.advance(3.0)
        await kinds(world)
    await world.show("completed", LINK, wait=30)
    assert world.chat.said(ts) == ["job_started", "job_finished"]


@pytest.mark.promise("isolated")
async def test_a_thread_that_became_unreadable_is_set_aside_at_its_next_news(world: CoreWorld) -> None:
    await world.started()
    world.clock.advance(3.0)
    assert await kinds(world) == [READ]
    await world.store.transact(lambda tx: tx.session.execute(update(threads).values(state="{")))
    world.job_api.show("job-1", "completed")
    seen = []
    for _ in range(3):
        world.clock.advance(3.0)
        seen += await kinds(world)
    assert seen == [KNOWN], "and then it is not due any more"


async def test_first_polls_are_claimed_a_few_threads_per_transaction(world: CoreWorld) -> None:
    """So that other work can run in between; everything due is still claimed."""
    count, read, transact = 2 * MOST_READ + 3, list[int](), world.store.transact
    for number in range(count):
        await StoreWorld(world.store).watched(f"t{number}")

    async def counted(work: Any, *, urgent: bool = False) -> Any:
        claimed = await transact(work, urgent=urgent)
        read.append(len(claimed))
        return claimed

    world.store.transact = counted  # type: ignore[method-assign]
    assert len(await world.job_poller.claim(100)) == count
    assert read == [MOST_READ, MOST_READ, 3]


async def test_a_follow_up_invalidates_the_remembered_poll(world: CoreWorld) -> None:
    """After it, the same result means something else."""
    ts = await world.started()
    await world.show("failed", wait=10)
    await world.reply(ts, "Once more", "5.1", wait=1)
    world.clock.advance(3.0)
    assert await kinds(world) == [READ]


async def test_insignificant_fields_that_always_differ_are_not_remembered(world: CoreWorld) -> None:
    """Remembering it would cost a separate read of the thread each time."""
    await world.started()
    seen = []
    for number in range(6):
        world.job_api.show("job-1", "active", details=JobDetails(summary=f"{number}"))
        world.clock.advance(40.0)
        seen += await kinds(world)
    assert seen == [READ, KNOWN, *[READ] * 4]


async def ended(world: CoreWorld) -> str:
    ts = await world.started()
    await world.show("failed", wait=400)
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
    await world.reply(ts, "more", "5.1", wait=45)
    thread = await world.thread(ts)
    assert world.job_api.messages == {}
    assert world.chat.said(ts) == ["job_started", "job_failed", "access_denied"]
    assert world.chat.cards[thread.id].state.failure.problem is None


async def test_a_follow_up_handed_back_for_its_age_leaves_no_outage_on_the_card(world: CoreWorld) -> None:
    ts = await ended(world)
    world.job_api.faults = [JobApiUnreachable("down") for _ in range(1_000)]
    await world.reply(ts, "more", "5.1", wait=200)
    world.clock.advance(3 * DAY)
    await world.pass_time(100)
    assert world.chat.said(ts) == ["job_started", "job_failed", "outage_started", "request_rejected"]
    world.job_api.faults = []
    await world.pass_time(100)
    thread = await world.thread(ts)
    assert world.chat.said(ts)[-1] == "outage_ended"
    assert world.chat.cards[thread.id].state.failure.problem is None


@pytest.fixture
async def old(world: CoreWorld) -> CoreWorld:
    """Three finished jobs that are over 90 days old, and a running one."""
    for number in range(1, 4):
        ts = await world.started(f"planted prompt {number}", key=f"k{number}")
        await world.reply(ts, f"planted reply {number}", f"{number}.5")
    await world.pass_time(20)
    for job in tuple(world.job_api.jobs):
        world.job_api.show(job, "completed", f"https://git.example/planted/{job}")
    await world.pass_time(3600)
    await world.started("running", key="k4")
    world.clock.advance(91 * DAY)
    await world.step(world.pull_request_poller)
    return world


async def prompts(world: CoreWorld) -> list[str]:
    found = [await world.store.transact(lambda tx, id_=id_: tx.threads.get(id_)) for id_ in world.chat.cards]  # type: ignore[misc]  # one thread at a time
    return [thread.prompt for thread in found if thread is not None]


async def logged(caplog: pytest.LogCaptureFixture, words: str) -> None:
    """Waits until this text has been logged."""
    async with asyncio.timeout(10):
        while words not in caplog.text:  # noqa: ASYNC110 - a log tells nobody of its lines
            await asyncio.sleep(0.01)


async def test_old_rows_are_deleted_and_logged_as_a_count(old: CoreWorld, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    before = old.clock.now() - 90 * 24 * 3600.0
    assert await old.store.transact(lambda tx: tx.audit.read(since=0.0, until=before, after=0, limit=100))
    running = asyncio.create_task(RetentionSweeper(old.store).run())
    await logged(caplog, "3 finished jobs older than 90 days were deleted")
    running.cancel()
    assert not await old.store.transact(lambda tx: tx.audit.read(since=0.0, until=before, after=0, limit=100))
    assert await prompts(old) == ["running"]
    assert "planted" not in caplog.text


@pytest.mark.first(tick=1)
@pytest.mark.parametrize(("tick", "batches"), [(0.001, (16, 24)), (0.02, (16, 16, 8))])
async def test_batches_grow_while_deleting_is_quick(world: CoreWorld, tick: float, batches: tuple[int, ...]) -> None:
    await world.store.transact(lambda tx: fill_activity(tx.session.connection, 40))
    ticks, left = count(), []
    transact = world.store.transact

    async def counted(work: Any) -> Any:
        result = await transact(work)
        left.append(len(await transact(lambda tx: tx.audit.read(since=0.0, until=2e9, after=0, limit=100))))
        return result

    world.store.transact = counted  # type: ignore[method-assign, assignment]  # only watched
    await RetentionSweeper(world.store, monotonic=lambda: next(ticks) * tick).sweep()
    assert tuple(before - after for before, after in pairwise([40, *left]) if before != after) == batches


async def test_retention_survives_a_database_outage(old: CoreWorld, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    faults, transact = [StoreUnavailable("locked")], old.store.transact

    async def away_once(work: object) -> object:
        if faults:
            raise faults.pop()
        return await transact(work)  # type: ignore[arg-type]  # passed on as it came

    old.store.transact = away_once  # type: ignore[method-assign, assignment]  # the fault is put in for the test
    running = asyncio.create_task(RetentionSweeper(old.store, sweep_every=0.01).run())
    await logged(caplog, "3 finished jobs")
    running.cancel()
    assert "old jobs cannot be deleted now, the next try is in an hour: locked" in caplog.text
    assert await prompts(old) == ["running"]
