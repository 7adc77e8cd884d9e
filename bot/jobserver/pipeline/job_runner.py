"""Runs jobs: the instructions of a job in order, several jobs at the same time."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from bot.errors import StoreError
from bot.jobapi.models import JobDetails
from bot.jobserver.errors import BudgetUsedUpError, EditError, JobServerError
from bot.jobserver.metrics import RunCounts, RunEnd
from bot.jobserver.pipeline.descriptions import MAX_REASON
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.records import Instruction, Outcome
from bot.jobserver.text import shortened
from bot.runtime.logging import LogContext, log_context
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 3
_RETRY_S = 2.0
T = TypeVar("T")


class Executor(Protocol):
    """Executes instructions."""

    async def execute(self, instruction: Instruction) -> Outcome:
        """Executes an instruction.

        A cancellation ends it within 5 s; if the change is just being pushed, it may still return.

        Raises:
            JobServerError: why it failed.
        """
        ...

    async def finish_pushed(self, instruction: Instruction) -> Outcome:
        """Finishes what an interrupted instruction has pushed, without executing it again."""
        ...


@dataclass
class JobRunner:
    """Runs a task for every job that has work.

    A message to an active job waits in the queue and is executed after the current instruction, in the order of
    arrival; the job stays `active` until its queue is empty. After a restart, the interrupted instruction starts again
    from the branch's last commit; one during which the server died three times fails. `executor_of` gets the id of a
    project; None: it is not served. `arrived` is called for a message to an active job, which may answer a question.
    `retry_pause` is in seconds.
    """

    queue: InstructionQueue
    executor_of: Callable[[str], Executor | None]
    max_concurrent_jobs: int
    arrived: Callable[[str], None] = lambda _: None
    retry_pause: float = _RETRY_S
    counts: RunCounts = field(default_factory=RunCounts)
    # Instructions that may have killed the server run one at a time, so that only the culprit is blamed.
    _suspects: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)
    _running: set[str] = field(default_factory=set, init=False)
    _woken_while_running: set[str] = field(default_factory=set, init=False)
    _executing: dict[int, asyncio.Task[Outcome]] = field(default_factory=dict, init=False)
    _is_stopping: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.max_concurrent_jobs)

    async def start(self) -> None:
        for job_id in await self.queue.requeue_interrupted():
            self.wake(job_id)

    def wake(self, job_id: str) -> None:
        """Has the job's queue processed soon; safe to call at any time."""
        if job_id in self._running:
            self._woken_while_running.add(job_id)
            self.arrived(job_id)
            return
        self._running.add(job_id)
        task = self._tasks.spawn(self._run_job(job_id), name=f"the queue of job {job_id}")
        task.add_done_callback(lambda done: self._ended(job_id, done))

    def interrupt(self, number: int) -> None:
        """Cancels an instruction, if it is running, after its cancellation was recorded."""
        if task := self._executing.get(number):
            task.cancel()

    async def stop(self) -> None:
        """Cancels running instructions; they run again after the next start."""
        self._is_stopping = True
        await self._tasks.cancel()

    def _ended(self, job_id: str, task: asyncio.Task[None]) -> None:
        self._running.discard(job_id)
        if task.cancelled() or self._is_stopping:
            return
        # A message may have arrived after the queue was found empty.
        if job_id in self._woken_while_running:
            self._woken_while_running.discard(job_id)
            self.wake(job_id)

    async def _run_job(self, job_id: str) -> None:
        async with self._slots:
            while not self._is_stopping:
                instruction = await self._retry_database(partial(self.queue.next_instruction, job_id))
                if instruction is None:
                    return
                with log_context(LogContext(instruction.request_id, instruction.job_id)):
                    outcome = await self._outcome(instruction)
                await self._retry_database(partial(self.queue.finish, instruction, outcome))

    async def _outcome(self, instruction: Instruction) -> Outcome:
        name = f"instruction {instruction.number}"
        logger.info("%s started, attempt %d", name, instruction.attempts)
        # Registered before the table is checked for a cancellation, so that none is missed.
        task = asyncio.create_task(self._execute(instruction), name=f"job {instruction.job_id}, {name}")
        self._executing[instruction.number] = task
        try:
            outcome = await task
        except asyncio.CancelledError:
            if self._is_stopping:
                # If this cannot be written, the attempt counts, as after a crash.
                with contextlib.suppress(StoreError):
                    await self.queue.release(instruction)
                raise
            logger.info("%s was stopped", name)
            self.counts.ended(RunEnd.STOPPED)
            return Outcome()
        except JobServerError as error:
            logger.warning("%s failed: %s", name, error)
            self.counts.ended(RunEnd.FAILED)
            question = error.question if isinstance(error, BudgetUsedUpError) else ""
            failure = shortened(str(error), MAX_REASON) or type(error).__name__
            return Outcome(failure=failure, details=JobDetails(question=question or None))
        except Exception as error:
            logger.exception("%s failed unexpectedly", name)
            self.counts.ended(RunEnd.CRASHED)
            kind = type(error).__name__
            return Outcome(failure=f"Something unexpected went wrong in the job server ({kind}). Its log says what.")
        finally:
            del self._executing[instruction.number]
        link = f": {outcome.pr_link}" if outcome.pr_link else ""
        end = RunEnd.FAILED if outcome.failure else RunEnd.DONE
        logger.info("%s %s%s", name, end, link)
        self.counts.ended(end)
        return outcome

    async def _execute(self, instruction: Instruction) -> Outcome:
        is_first, executor = instruction.attempts <= 1, self.executor_of(instruction.project_id)
        if executor is None:
            raise EditError(f"The job server has no project {instruction.project_id} any more.")
        if await self._retry_database(partial(self.queue.is_stopped, instruction)):
            return Outcome() if is_first else await executor.finish_pushed(instruction)
        if instruction.attempts > MAX_ATTEMPTS:
            raise EditError(
                f"The job server ended unexpectedly {MAX_ATTEMPTS} times while it worked on this, so it will not try "
                "again. Its log may say why; a smaller request may succeed."
            )
        if is_first:
            return await executor.execute(instruction)
        async with self._suspects:
            return await executor.execute(instruction)

    async def _retry_database(self, transaction: Callable[[], Awaitable[T]]) -> T:
        """Retries until it succeeds: a locked database or a full disk must not lose finished work."""
        has_failed = False
        while True:
            try:
                return await transaction()
            except StoreError as error:
                if not has_failed:
                    logger.warning("the job table cannot be written (%s); trying again until it can", error)
                has_failed = True
                await asyncio.sleep(self.retry_pause)
