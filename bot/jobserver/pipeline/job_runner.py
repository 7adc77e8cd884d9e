"""Runs what a worker claims: the instructions of a job in order, several jobs at the same time."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from bot.errors import StoreError
from bot.jobapi.models import JobDetails
from bot.jobserver.errors import BudgetUsedUpError, EditError, JobServerError, LeaseLostError
from bot.jobserver.metrics import RunCounts, RunEnd
from bot.jobserver.pipeline.descriptions import MAX_REASON
from bot.jobserver.store.claims import LEASE, Wanted, Worker
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.records import HeldInstruction, Instruction, Outcome
from bot.jobserver.text import shortened
from bot.runtime.clock import SteadyClock
from bot.runtime.logging import LogContext, log_context
from bot.runtime.tasks import BackgroundTasks, Supervisor

logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 3
_RETRY_S = 2.0
_LOOK_S = 1.0
_STOP_S = 2.0
_LEASE_S = LEASE.total_seconds()
_RENEWAL_S = _LEASE_S / 3
_ANSWER_S = _LEASE_S / 6
"""How long the database may take to renew: between two tries, an agent can still be ended before its lease is over."""
T = TypeVar("T")


class Executor(Protocol):
    """Executes instructions."""

    async def execute(self, instruction: Instruction) -> Outcome:
        """Executes an instruction.

        A cancellation ends it within 5 s; if the change is just being pushed, it may still return.

        Raises:
            JobServerError: why it failed.
        """

    async def finish_pushed(self, instruction: Instruction) -> Outcome:
        """Finishes what an interrupted instruction has pushed, without executing it again."""


@dataclass(eq=False)
class _Run:
    """A claimed instruction. `until`: when its lease ends, by this process's clock. `newest`: the message seen last."""

    instruction: Instruction
    until: float
    newest: int = 0
    execution: asyncio.Task[Outcome] | None = None
    is_ending: bool = False
    is_lost: bool = False

    def end(self) -> None:
        """Ends the execution; a second time would cut short what it still has to do."""
        if self.execution and not self.is_ending:
            self.is_ending = True
            self.execution.cancel()

    def lose(self) -> None:
        """Ends the execution, whose outcome nobody wants."""
        if self.execution and not self.execution.done():
            self.is_lost = True
            self.end()


@dataclass
class JobRunner:
    """Claims instructions of the `projects`, with what it offers for each, and runs each in a task.

    A message to an active job waits in the queue and is executed after the current instruction, in the order of
    arrival; the job stays `active` until its queue is empty. An interrupted instruction starts again from the branch's
    last commit, here or elsewhere; one during which a worker died three times fails. `executor_of` gets the id of a
    project; None: it is not served. `arrived` is called for a message to an active job, which may answer a question.
    Pauses are in seconds; `stop_time` is how long what runs may go on after a stop.
    """

    queue: InstructionQueue
    executor_of: Callable[[str], Executor | None]
    projects: Callable[[], Mapping[str, str]]
    max_concurrent_jobs: int
    arrived: Callable[[str], None] = lambda _: None
    look_pause: float = _LOOK_S
    retry_pause: float = _RETRY_S
    stop_time: float = 0.0
    monotonic: Callable[[], float] = field(default_factory=lambda: SteadyClock().monotonic)
    counts: RunCounts = field(default_factory=RunCounts)
    worker: Worker = field(default_factory=Worker)
    _loops: Supervisor = field(default_factory=Supervisor, init=False)
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)
    _runs: dict[int, _Run] = field(default_factory=dict, init=False)
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _has_news: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _is_alone: bool = field(default=False, init=False)
    _is_stopping: bool = field(default=False, init=False)

    async def start(self) -> None:
        """Begins to work. On SQLite, what the previous process was doing is done again at once."""
        self._is_alone = await self.queue.end_leases()
        self._loops.start("job queue", self._look)
        self._loops.start("leases", self._keep)

    def wake(self, job_id: str) -> None:
        """Has what was recorded of a job seen at once; safe to call at any time."""
        self._woken.set()
        self._has_news.set()
        self.arrived(job_id)

    def interrupt(self, number: int) -> None:
        """Cancels an instruction, if it is running here, after its cancellation was recorded."""
        if run := self._runs.get(number):
            run.end()

    async def stop(self) -> None:
        """Begins nothing more; after `stop_time`, cancels what still runs, and gives it back."""
        self._is_stopping = True
        self._loops.stop_restarting()
        self._woken.set()
        await self._tasks.drain(self.stop_time)
        await self._loops.stop(_STOP_S)
        # If this cannot be written, the attempts count, as after a crash.
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await self.queue.release(self.worker.name)
                await self.queue.leave(self.worker)

    async def _look(self) -> None:
        """Claims while there is work and a free slot, and looks again when woken, or after a pause."""
        while not self._is_stopping:
            if len(self._runs) >= self.max_concurrent_jobs or not await self._retry_database(self._begin_next):
                await self._pause(self._woken)

    async def _pause(self, news: asyncio.Event) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.look_pause):
                await news.wait()
        news.clear()

    async def _begin_next(self) -> bool:
        """Returns whether there was an instruction to begin."""
        # Those that may have killed a worker run one at a time, so that only the culprit is blamed.
        is_free_of_suspects = all(run.instruction.attempts <= 1 for run in self._runs.values())
        wanted = Wanted(self.projects(), list(self._runs), suspects=is_free_of_suspects)
        began = self.monotonic()
        instruction = await self.queue.claim(self.worker, wanted)
        if instruction is not None and self._is_stopping:
            await self.queue.release(self.worker.name, instruction.number)
        if instruction is None or self._is_stopping:
            return False
        run = self._runs[instruction.number] = _Run(instruction, began + _LEASE_S)
        with log_context(LogContext(instruction.request_id, instruction.job_id)):
            self._tasks.spawn(self._run(run), name=f"job {instruction.job_id}, instruction {instruction.number}")
        return True

    async def _run(self, run: _Run) -> None:
        instruction = run.instruction
        try:
            outcome = await self._outcome(run)
            await self._retry_database(partial(self.queue.finish, instruction, outcome))
        except LeaseLostError:
            logger.warning("instruction %d is not this worker's any more: its outcome is dropped", instruction.number)
            # What nobody has taken meanwhile.
            await self._retry_database(partial(self.queue.release, self.worker.name, instruction.number))
        finally:
            del self._runs[instruction.number]
            self._woken.set()

    async def _outcome(self, run: _Run) -> Outcome:
        instruction, name = run.instruction, f"instruction {run.instruction.number}"
        logger.info("%s started, attempt %d", name, instruction.attempts)
        # Known before the table is checked for a cancellation, so that none is missed.
        run.execution = asyncio.create_task(self._execute(instruction), name=f"the execution of {name}")
        try:
            outcome, end = await self._executed(run, run.execution)
        except LeaseLostError:
            raise
        except JobServerError as error:
            logger.warning("%s failed: %s", name, error)
            question = error.question if isinstance(error, BudgetUsedUpError) else ""
            failure = shortened(str(error), MAX_REASON) or type(error).__name__
            outcome = Outcome(failure=failure, details=JobDetails(question=question or None))
            end = RunEnd.FAILED
        except Exception as error:
            logger.exception("%s failed unexpectedly", name)
            kind = type(error).__name__
            outcome = Outcome(failure=f"Something unexpected went wrong in the job server ({kind}). Its log says what.")
            end = RunEnd.CRASHED
        link = f": {outcome.pr_link}" if outcome.pr_link else ""
        logger.info("%s %s%s", name, end, link)
        self.counts.ended(instruction.project_id, end)
        return outcome

    async def _executed(self, run: _Run, execution: asyncio.Task[Outcome]) -> tuple[Outcome, RunEnd]:
        try:
            outcome = await execution
        except asyncio.CancelledError:
            if self._is_stopping and not run.is_ending:
                raise
            if run.is_lost:
                raise LeaseLostError from None
            return await self._pushed_before_the_stop(run.instruction), RunEnd.STOPPED
        return outcome, RunEnd.FAILED if outcome.failure else RunEnd.DONE

    async def _execute(self, instruction: Instruction) -> Outcome:
        if await self._retry_database(partial(self.queue.is_stopped, instruction)):
            raise asyncio.CancelledError  # as if it had been stopped now
        executor = self.executor_of(instruction.project_id)
        if executor is None:
            raise LeaseLostError
        if instruction.attempts > MAX_ATTEMPTS:
            # Once, since this may be what ends it.
            if instruction.attempts == MAX_ATTEMPTS + 1 and (done := await executor.finish_pushed(instruction)).commit:
                return done
            raise EditError(
                f"The job server ended unexpectedly {MAX_ATTEMPTS} times while it worked on this, so it will not try "
                "again. Its log may say why; a smaller request may succeed."
            )
        return await executor.execute(instruction)

    async def _pushed_before_the_stop(self, instruction: Instruction) -> Outcome:
        """Finishes what an earlier run has pushed. Not in the execution, which ends when the stop is seen again."""
        if not instruction.was_begun or instruction.attempts > MAX_ATTEMPTS + 1:
            return Outcome()
        if (executor := self.executor_of(instruction.project_id)) is None:
            raise LeaseLostError
        return await executor.finish_pushed(instruction)

    async def _keep(self) -> None:
        """Keeps the leases of what runs, and ends what was stopped, or what may soon be another's."""
        renewed = -_RENEWAL_S
        while True:
            now, runs = self.monotonic(), dict(self._runs)
            is_due = now - renewed >= _RENEWAL_S
            try:
                async with asyncio.timeout(_ANSWER_S):
                    if is_due and not self._is_alone:
                        await self.queue.announce(self.worker, self.projects())
                    held = await self.queue.watch(self.worker.name, runs, renew=is_due) if runs else {}
            except (StoreError, TimeoutError) as error:
                logger.info("the leases cannot be looked at: %s", str(error) or "the database does not answer")
            else:
                renewed = now if is_due else renewed
                for number, run in runs.items():
                    self._follow(run, held.get(number), until=now + _LEASE_S if is_due else run.until)
            for run in self._runs.values():
                if self.monotonic() > run.until - _RENEWAL_S and not self._is_alone:
                    run.lose()
            await self._pause(self._has_news)

    def _follow(self, run: _Run, row: HeldInstruction | None, *, until: float) -> None:
        if row is None:
            run.lose()
            return
        run.until = until
        if row.is_stopped:
            run.end()
        if row.newest > run.newest:
            run.newest = row.newest
            self.arrived(run.instruction.job_id)

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
