"""Jobs run through queues: in order, a few at once, whatever the database does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from datetime import UTC, datetime

import pytest

from bot.errors import StoreUnavailable
from bot.jobapi.models import AgentJob, JobDetails, Requester, Status
from bot.jobserver.errors import JobServerError
from bot.jobserver.pipeline.job_runner import JobRunner
from bot.jobserver.store.claims import LEASE, Wanted, Worker
from bot.jobserver.store.database import Database
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.records import (
    HeldInstruction,
    Instruction,
    JobTemplate,
    Outcome,
    PromptRequest,
)

pytestmark = pytest.mark.either_database

TEMPLATE = JobTemplate("repository", "main", "builtin")
LINK = "http://127.0.0.1/pulls/1"
NOTHING, PUSHED = Outcome(), Outcome(commit="c0ffee", pr_link=LINK)
ROBIN = Requester(name="Robin")


class UnreliableQueue(InstructionQueue):
    """A real table whose first two endings cannot be written."""

    failures_left = 2

    async def finish(self, instruction: Instruction, outcome: Outcome) -> None:
        if self.failures_left:
            self.failures_left -= 1
            raise StoreUnavailable("The database is locked.")
        await super().finish(instruction, outcome)


Execute = Callable[[Instruction], Awaitable[Outcome | None]]


class ScriptedExecutor:
    """An executor that does what a test says; `pushed` is what it claims to have pushed before."""

    def __init__(self, execute: Execute, pushed: Outcome) -> None:
        self._execute, self._pushed = execute, pushed

    async def execute(self, instruction: Instruction) -> Outcome:
        return await self._execute(instruction) or Outcome()

    async def finish_pushed(self, instruction: Instruction) -> Outcome:
        return self._pushed


class Jobs:
    """Both sides of a real store."""

    def __init__(self, url: str) -> None:
        self.time = datetime.now(UTC)
        self.database, self.runners = Database(url, now=lambda: self.time), list[JobRunner]()
        self.store = JobStore(self.database, "docs", rate_limit=100)
        self.queue = InstructionQueue(self.database)

    async def add(self, prompt: str, job_id: str | None = None) -> str:
        return (await self.store.submit(PromptRequest(prompt, job_id), TEMPLATE)).id

    async def claimed(self) -> Instruction | None:
        """Claims the next instruction as a worker that dies then."""
        return await self.queue.claim(Worker("dead"), Wanted(["docs"]))

    async def get(self, job_id: str) -> AgentJob:
        return await self.store.get(job_id)

    async def details(self, job_id: str) -> JobDetails:
        return (await self.get(job_id)).details or JobDetails()

    async def ended(self, job_id: str) -> AgentJob:
        async with asyncio.timeout(10):
            while (job := await self.get(job_id)).status is Status.ACTIVE:  # noqa: ASYNC110 (the table has no event)
                await asyncio.sleep(0.01)
        return job

    def runner(
        self,
        execute: Execute,
        *,
        queue: InstructionQueue | None = None,
        at_once: int = 1,
        pushed: Outcome = NOTHING,
    ) -> JobRunner:
        executor = ScriptedExecutor(execute, pushed)
        runner = JobRunner(
            queue or self.queue,
            lambda _: executor,
            lambda: {"docs": "fake"},
            max_concurrent_jobs=at_once,
            retry_pause=0.01,
        )
        self.runners.append(runner)
        return runner


async def nothing(_: Instruction) -> None:
    return


@pytest.fixture
async def jobs(jobs_database: str) -> AsyncIterator[Jobs]:
    jobs = Jobs(jobs_database)
    async with jobs.database:
        yield jobs
        for runner in jobs.runners:
            await runner.stop()


async def test_a_jobs_instructions_run_in_order_and_jobs_run_concurrently(jobs: Jobs) -> None:
    at_work, order, most = set[str](), list[str](), 0
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

    ids = [await jobs.add(f"{name}1") for name in "abc"]
    for name, job_id in zip("abc", ids, strict=True):
        await jobs.add(f"{name}2", job_id)
    await jobs.runner(execute, at_once=2).start()
    for job_id in ids:
        assert (await jobs.ended(job_id)).status is Status.COMPLETED
    assert most == 2
    assert sorted(order) == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert all(order.index(f"{name}1") < order.index(f"{name}2") for name in "abc")


async def test_finished_work_is_recorded_once_the_table_is_writable(jobs: Jobs) -> None:
    done = list[str]()

    async def execute(instruction: Instruction) -> Outcome:
        done.append(instruction.prompt)
        return Outcome(pr_link=LINK)

    job_id = await jobs.add("one")
    await jobs.runner(execute, queue=UnreliableQueue(jobs.database)).start()
    job = await jobs.ended(job_id)
    assert (job.status, job.pr_link, done) == (Status.COMPLETED, LINK, ["one"])


FAULTS = [
    (JobServerError("in words"), "in words"),
    (ZeroDivisionError(), "Something unexpected went wrong in the job server (ZeroDivisionError). Its log says what."),
    (OSError(28, "No space left"), "Something unexpected went wrong in the job server (OSError). Its log says what."),
]


@pytest.mark.parametrize(("error", "reason"), FAULTS)
async def test_any_error_ends_only_its_job_and_is_the_reason(jobs: Jobs, error: Exception, reason: str) -> None:
    async def execute(instruction: Instruction) -> None:
        if instruction.prompt == "bad":
            raise error

    bad, good = await jobs.add("bad"), await jobs.add("good")
    runner = jobs.runner(execute)
    await runner.start()
    assert (await jobs.ended(bad)).status is Status.FAILED
    assert (await jobs.details(bad)).reason == reason
    assert (await jobs.ended(good)).status is Status.COMPLETED
    await jobs.add("better", bad)
    assert (await jobs.get(bad)).details is None
    runner.wake(bad)
    assert (await jobs.ended(bad)).status is Status.COMPLETED


async def test_a_message_arriving_at_the_end_of_the_queue_is_processed(jobs: Jobs) -> None:
    async def execute(instruction: Instruction) -> None:
        if instruction.prompt == "one":
            await jobs.add("two", instruction.job_id)
            runner.wake(instruction.job_id)

    runner = jobs.runner(execute)
    job_id = await jobs.add("one")
    await runner.start()
    assert (await jobs.ended(job_id)).status is Status.COMPLETED
    assert await jobs.claimed() is None


class Held:
    """An execution that continues until it is cancelled, or until `go`."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.seen: list[Instruction] = []

    async def __call__(self, instruction: Instruction) -> Outcome:
        self.seen.append(instruction)
        self.started.set()
        await self.go.wait()
        return Outcome(pr_link=LINK)


async def test_an_interrupted_instruction_restarts_without_counting_an_attempt(jobs: Jobs) -> None:
    job_id = await jobs.add("one")
    for _ in range(5):
        held = Held()
        runner = jobs.runner(held)
        await runner.start()
        await asyncio.wait_for(held.started.wait(), 10)
        assert held.seen[0].attempts == 1
        await runner.stop()
    assert (await jobs.get(job_id)).status is Status.ACTIVE
    assert await jobs.claimed() is not None


async def test_work_finished_despite_a_stop_is_recorded_and_nothing_more_starts(jobs: Jobs) -> None:
    started, seen = asyncio.Event(), list[str]()

    async def execute(instruction: Instruction) -> Outcome:
        seen.append(instruction.prompt)
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return Outcome(commit="c0ffee", pr_link=LINK)

    job_id = await jobs.add("one")
    await jobs.add("two", job_id)
    runner = jobs.runner(execute)
    await runner.start()
    await asyncio.wait_for(started.wait(), 10)
    await runner.stop()
    assert seen == ["one"]
    two = await jobs.claimed()
    assert two is not None
    assert two.prompt == "two"


@pytest.mark.parametrize("pushed", [NOTHING, Outcome(commit="abc")])
async def test_an_instruction_that_crashed_the_server_three_times_fails_unless_it_was_pushed(
    jobs: Jobs, pushed: Outcome
) -> None:
    job_id, done = await jobs.add("one"), list[str]()

    async def execute(instruction: Instruction) -> None:
        done.append(instruction.prompt)

    for attempt in (1, 2, 3):
        taken = await jobs.claimed()
        assert taken is not None
        assert taken.attempts == attempt
        jobs.time += LEASE
    runner = jobs.runner(execute, pushed=pushed)
    await jobs.add("two", job_id)
    await runner.start()
    assert (await jobs.ended(job_id)).status is (Status.COMPLETED if pushed.commit else Status.FAILED)
    why = "ended unexpectedly 3 times" in str((await jobs.details(job_id)).reason)
    assert why == (pushed.commit is None)
    assert done == ["two"]


async def test_an_interrupted_instruction_runs_beside_no_other_suspect(jobs: Jobs) -> None:
    ids = [await jobs.add(name) for name in "abc"]
    for _ in ids:
        await jobs.claimed()
    jobs.time += LEASE
    at_work, most = 0, 0

    async def execute(_: Instruction) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0)
        at_work -= 1

    await jobs.runner(execute, at_once=3).start()
    for job_id in ids:
        await jobs.ended(job_id)
    assert most == 1


async def test_a_cancel_between_claim_and_execution_is_found_in_its_row(jobs: Jobs) -> None:
    done = list[str]()

    class CancelledWhileTaken(InstructionQueue):
        async def claim(self, worker: Worker, wanted: Wanted) -> Instruction | None:
            taken = await super().claim(worker, wanted)
            if taken:
                cancelled = await jobs.store.cancel(taken.job_id, ROBIN)
                runner.interrupt(cancelled.running or 0)
            return taken

    async def execute(instruction: Instruction) -> None:
        done.append(instruction.prompt)

    runner = jobs.runner(execute, queue=CancelledWhileTaken(jobs.database))
    job_id = await jobs.add("one")
    await runner.start()
    assert (await jobs.ended(job_id)).status is Status.COMPLETED
    assert (await jobs.details(job_id)).reason == "stopped by Robin"
    assert done == []


async def test_a_cancel_as_the_work_finishes_keeps_what_was_pushed(jobs: Jobs) -> None:
    async def execute(instruction: Instruction) -> Outcome:
        cancelled = await jobs.store.cancel(instruction.job_id, ROBIN)
        assert cancelled.running == instruction.number
        return Outcome(commit="c0ffee", pr_link=LINK, details=JobDetails(summary="Done.", revision="c0ffee"))

    runner = jobs.runner(execute)
    job_id = await jobs.add("one")
    await runner.start()
    job = await jobs.ended(job_id)
    assert (job.status, job.pr_link) == (Status.COMPLETED, LINK)
    reason = "stopped by Robin, after the change had been pushed"
    assert job.details == JobDetails(summary="Done.", revision="c0ffee", reason=reason)


async def test_a_job_that_fails_because_it_was_cancelled_is_completed(jobs: Jobs) -> None:
    async def execute(instruction: Instruction) -> None:
        await jobs.store.cancel(instruction.job_id)
        raise JobServerError("the connection was lost")

    runner = jobs.runner(execute)
    job_id = await jobs.add("one")
    await runner.start()
    assert (await jobs.ended(job_id)).status is Status.COMPLETED
    assert (await jobs.details(job_id)).reason == "stopped by request"


@pytest.mark.parametrize(("pushed", "crashes", "link"), [(NOTHING, 1, None), (PUSHED, 1, LINK), (PUSHED, 4, None)])
async def test_a_cancel_before_a_crash_still_stops_and_keeps_what_was_pushed(
    jobs: Jobs, pushed: Outcome, crashes: int, link: str | None
) -> None:
    """Unless that is what may have ended the server."""
    job_id = await jobs.add("one")
    for _ in range(crashes):
        await jobs.claimed()
        jobs.time += LEASE
    await jobs.store.cancel(job_id, ROBIN)
    await jobs.runner(nothing, pushed=pushed).start()
    job = await jobs.ended(job_id)
    assert (job.status, job.pr_link) == (Status.COMPLETED, link)
    assert str((await jobs.details(job_id)).reason).startswith("stopped by Robin")


async def test_a_stopped_job_ends_though_what_was_pushed_before_cannot_be_looked_up(jobs: Jobs) -> None:
    class OutOfReach(ScriptedExecutor):
        async def finish_pushed(self, instruction: Instruction) -> Outcome:
            raise JobServerError(f"the repository of instruction {instruction.number} is out of reach")

    job_id = await jobs.add("one")
    await jobs.claimed()
    await jobs.store.cancel(job_id, ROBIN)
    jobs.time += LEASE
    runner = jobs.runner(nothing)
    runner.executor_of = lambda _: OutOfReach(nothing, NOTHING)
    await runner.start()
    assert (await jobs.ended(job_id)).status is Status.COMPLETED
    assert str((await jobs.details(job_id)).reason).startswith("stopped by Robin")


class Looks(InstructionQueue):
    """A queue that says when its worker has looked at what it runs."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.looked = asyncio.Event()

    async def watch(self, worker: str, numbers: Collection[int], *, renew: bool) -> dict[int, HeldInstruction]:
        held = await super().watch(worker, numbers, renew=renew)
        self.looked.set()
        return held


@pytest.mark.parametrize("is_known", [True, False], ids=["stopped before", "stopped while it was done again"])
async def test_what_was_pushed_before_a_crash_is_finished_though_the_worker_sees_the_stop_meanwhile(
    jobs: Jobs, *, is_known: bool
) -> None:
    queue = Looks(jobs.database)

    class Slow(ScriptedExecutor):
        async def finish_pushed(self, instruction: Instruction) -> Outcome:
            for _ in range(2):  # the first may have begun before
                queue.looked.clear()
                runner.wake(instruction.job_id)
                await queue.looked.wait()
            return PUSHED

    async def stopped(instruction: Instruction) -> None:
        await jobs.store.cancel(instruction.job_id, ROBIN)
        runner.wake(instruction.job_id)
        await asyncio.Event().wait()

    runner = jobs.runner(nothing, queue=queue)
    runner.executor_of = lambda _: Slow(stopped, NOTHING)
    job_id = await jobs.add("one")
    await jobs.claimed()
    if is_known:
        await jobs.store.cancel(job_id, ROBIN)
    jobs.time += LEASE
    await runner.start()
    job = await jobs.ended(job_id)
    assert (job.status, job.pr_link) == (Status.COMPLETED, LINK)
    assert (await jobs.details(job_id)).reason == "stopped by Robin, after the change had been pushed"
