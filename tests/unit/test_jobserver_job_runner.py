"""How jobs are run: it goes through queues: in order, a few jobs at once, whatever the database does."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.jobserver.errors import JobServerError
from bot.jobserver.executor.job_runner import JobRunner
from bot.jobserver.models import AgentJob, Status
from bot.jobserver.store.database import Database
from bot.jobserver.store.jobs import STEPS, Instruction, JobStore, JobTemplate, PromptRequest

TEMPLATE = JobTemplate("repository", "main", "builtin")


class UnreliableJobStore(JobStore):
    """A real table whose first two endings cannot be written."""

    failures_left = 2

    async def finish(self, instruction: Instruction, *, pr_link: str | None = None, failure: str | None = None) -> None:
        if self.failures_left:
            self.failures_left -= 1
            raise sqlite3.OperationalError("database is locked")
        await super().finish(instruction, pr_link=pr_link, failure=failure)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database(tmp_path / "jobs.sqlite3", STEPS) as database:
        yield database


def table(database: Database, kind: type[JobStore] = JobStore) -> JobStore:
    return kind(database, rate_limit=100, now=lambda: datetime.now(UTC))


async def add(jobs: JobStore, prompt: str, job_id: str | None = None) -> str:
    return (await jobs.submit(PromptRequest("docs", prompt, job_id), TEMPLATE)).id


async def ended(jobs: JobStore, job_id: str) -> AgentJob:
    async with asyncio.timeout(10):
        while (job := await jobs.get("docs", job_id)).status is Status.ACTIVE:  # noqa: ASYNC110 (the table has no event)
            await asyncio.sleep(0.01)
    return job


async def test_one_job_is_worked_on_in_order_and_others_at_the_same_time(database: Database) -> None:
    jobs, at_work, order, most = table(database), set[str](), list[str](), 0
    two_at_once = asyncio.Event()

    async def execute(instruction: Instruction) -> None:
        nonlocal most
        assert instruction.job_id not in at_work
        at_work.add(instruction.job_id)
        most = max(most, len(at_work))
        if most == 2:
            two_at_once.set()
        await asyncio.wait_for(two_at_once.wait(), 10)
        order.append(instruction.prompt)
        at_work.remove(instruction.job_id)

    ids = [await add(jobs, f"{name}1") for name in "abc"]
    for name, job_id in zip("abc", ids, strict=True):
        await add(jobs, f"{name}2", job_id)
    runner = JobRunner(jobs, execute, max_concurrent_jobs=2)
    await runner.start()
    for job_id in ids:
        assert (await ended(jobs, job_id)).status is Status.COMPLETED
    assert most == 2
    assert sorted(order) == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert all(order.index(f"{name}1") < order.index(f"{name}2") for name in "abc")
    await runner.stop()


async def test_work_that_was_done_is_recorded_once_the_table_can_be_written(database: Database) -> None:
    jobs, done = table(database, UnreliableJobStore), list[str]()

    async def execute(instruction: Instruction) -> str:
        done.append(instruction.prompt)
        return "http://127.0.0.1/pulls/1"

    job_id = await add(jobs, "one")
    runner = JobRunner(jobs, execute, max_concurrent_jobs=1, retry_pause=0.01)
    await runner.start()
    job = await ended(jobs, job_id)
    assert (job.status, job.pr_link, done) == (Status.COMPLETED, "http://127.0.0.1/pulls/1", ["one"])
    await runner.stop()


@pytest.mark.parametrize("error", [JobServerError("in words"), ZeroDivisionError(), OSError(28, "No space left")])
async def test_whatever_goes_wrong_ends_that_job_only(database: Database, error: Exception) -> None:
    jobs = table(database)

    async def execute(instruction: Instruction) -> None:
        if instruction.prompt == "bad":
            raise error

    bad, good = await add(jobs, "bad"), await add(jobs, "good")
    runner = JobRunner(jobs, execute, max_concurrent_jobs=1)
    await runner.start()
    assert (await ended(jobs, bad)).status is Status.FAILED
    assert (await ended(jobs, good)).status is Status.COMPLETED
    await add(jobs, "better", bad)
    runner.wake(bad)
    assert (await ended(jobs, bad)).status is Status.COMPLETED
    await runner.stop()


async def test_a_message_that_comes_as_the_queue_ends_is_not_forgotten(database: Database) -> None:
    jobs = table(database)

    async def execute(instruction: Instruction) -> None:
        if instruction.prompt == "one":
            await add(jobs, "two", instruction.job_id)
            runner.wake(instruction.job_id)

    runner = JobRunner(jobs, execute, max_concurrent_jobs=1)
    job_id = await add(jobs, "one")
    runner.wake(job_id)
    runner.wake(job_id)
    assert (await ended(jobs, job_id)).status is Status.COMPLETED
    assert await jobs.requeue_interrupted() == []
    await runner.stop()


async def test_a_stop_leaves_the_interrupted_instruction_for_the_next_start(database: Database) -> None:
    jobs, started = table(database), asyncio.Event()

    async def never(_: Instruction) -> None:
        started.set()
        await asyncio.Event().wait()

    job_id = await add(jobs, "one")
    runner = JobRunner(jobs, never, max_concurrent_jobs=1)
    await runner.start()
    await asyncio.wait_for(started.wait(), 10)
    await runner.stop()
    assert (await jobs.get("docs", job_id)).status is Status.ACTIVE
    assert await jobs.requeue_interrupted() == [job_id]
