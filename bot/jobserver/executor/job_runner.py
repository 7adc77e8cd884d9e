"""Runs jobs: the instructions of one job in their order, a few jobs at the same time."""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

from bot.jobserver.errors import JobServerError
from bot.jobserver.store.jobs import Instruction
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
_RETRY_S = 2.0
T = TypeVar("T")
Execute = Callable[[Instruction], Awaitable[str | None]]
"""Executes an instruction; returns the pull request's link if there is one."""


class InstructionQueue(Protocol):
    """What the runner needs of the store of jobs."""

    async def requeue_interrupted(self) -> list[str]: ...

    async def next_instruction(self, job_id: str) -> Instruction | None: ...

    async def finish(
        self, instruction: Instruction, *, pr_link: str | None = None, failure: str | None = None
    ) -> None: ...


class JobRunner:
    """Keeps a task for every job that has work.

    A message sent while its job is at work waits in the queue and is executed after the current instruction, in the
    order of arrival; the job stays `active` until its queue is empty. After a restart the interrupted instruction
    starts again in a fresh working copy of its branch. `retry_pause` is in seconds.
    """

    def __init__(
        self, queue: InstructionQueue, execute: Execute, *, max_concurrent_jobs: int, retry_pause: float = _RETRY_S
    ) -> None:
        self._queue = queue
        self._execute = execute
        self._retry_pause = retry_pause
        self._slots = asyncio.Semaphore(max_concurrent_jobs)
        self._tasks = BackgroundTasks()
        self._running: set[str] = set()
        self._woken_while_running: set[str] = set()

    async def start(self) -> None:
        for job_id in await self._queue.requeue_interrupted():
            self.wake(job_id)

    def wake(self, job_id: str) -> None:
        """Looks at the job's queue soon; safe to call at any time."""
        if job_id in self._running:
            self._woken_while_running.add(job_id)
            return
        self._running.add(job_id)
        task = self._tasks.spawn(self._run_job(job_id), name=f"the queue of job {job_id}")
        task.add_done_callback(lambda done: self._ended(job_id, done))

    async def stop(self) -> None:
        """Cancels what is running; it starts again with the next start."""
        await self._tasks.cancel()

    def _ended(self, job_id: str, task: asyncio.Task[None]) -> None:
        self._running.discard(job_id)
        if task.cancelled():
            return
        # A message may have arrived after the queue was found empty.
        if job_id in self._woken_while_running:
            self._woken_while_running.discard(job_id)
            self.wake(job_id)

    async def _run_job(self, job_id: str) -> None:
        async with self._slots:
            while instruction := await self._retry_database(partial(self._queue.next_instruction, job_id)):
                await self._run_instruction(instruction)

    async def _run_instruction(self, instruction: Instruction) -> None:
        logger.info("job %s: instruction %d started", instruction.job_id, instruction.number)
        try:
            pr_link = await self._execute(instruction)
        except JobServerError as error:
            logger.warning("job %s: failed: %s", instruction.job_id, error)
            await self._finish(instruction, failure=str(error) or type(error).__name__)
        except Exception as error:
            logger.exception("job %s: failed unexpectedly", instruction.job_id)
            await self._finish(instruction, failure=f"unexpected: {type(error).__name__}")
        else:
            await self._finish(instruction, pr_link=pr_link)
            logger.info("job %s: instruction %d done", instruction.job_id, instruction.number)

    async def _finish(
        self, instruction: Instruction, *, pr_link: str | None = None, failure: str | None = None
    ) -> None:
        await self._retry_database(partial(self._queue.finish, instruction, pr_link=pr_link, failure=failure))

    async def _retry_database(self, transaction: Callable[[], Awaitable[T]]) -> T:
        """Tries until it succeeds: with a locked database or a full disk, work that is done must not be lost."""
        has_failed = False
        while True:
            try:
                return await transaction()
            except sqlite3.Error as error:
                if not has_failed:
                    logger.warning("the job table cannot be written (%s); trying again until it can", error)
                has_failed = True
                await asyncio.sleep(self._retry_pause)
