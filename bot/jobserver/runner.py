"""Works through the instructions of jobs: one at a time for a job, a few jobs at once."""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from bot.jobserver.errors import JobServerError
from bot.jobserver.jobs import Instruction, Jobs

_logger = logging.getLogger(__name__)
_PAUSE_S = 2.0
T = TypeVar("T")
CarryOut = Callable[[Instruction], Awaitable[str | None]]


class Runner:
    """Keeps a task for every job that has work.

    A message sent while its job is at work waits in the queue and is carried out after the current instruction, in
    the order of arrival; the job stays `active` until its queue is empty. After a restart the interrupted
    instruction starts again in a clean copy of its branch.
    """

    def __init__(self, jobs: Jobs, carry_out: CarryOut, *, max_concurrent_jobs: int, pause: float = _PAUSE_S) -> None:
        self._jobs = jobs
        self._carry_out = carry_out
        self._pause = pause
        self._places = asyncio.Semaphore(max_concurrent_jobs)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    async def start(self) -> None:
        for job_id in await self._jobs.waiting():
            self.wake(job_id)

    def wake(self, job_id: str) -> None:
        """Look at the job's queue soon; safe to call at any time."""
        if job_id in self._tasks:
            self._again.add(job_id)
            return
        task = asyncio.create_task(self._work(job_id), name=f"job {job_id}")
        self._tasks[job_id] = task
        task.add_done_callback(lambda done: self._ended(job_id, done))

    async def stop(self) -> None:
        """End what is at work; it starts again with the next start."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, job_id: str, task: asyncio.Task[None]) -> None:
        del self._tasks[job_id]
        if task.cancelled():
            return
        if error := task.exception():
            _logger.error("job %s: its queue could not be worked on until the next message", job_id, exc_info=error)
        # A message may have arrived after the queue was found empty.
        if job_id in self._again:
            self._again.discard(job_id)
            self.wake(job_id)

    async def _work(self, job_id: str) -> None:
        async with self._places:
            while instruction := await self._recorded(partial(self._jobs.next_instruction, job_id)):
                await self._one(instruction)

    async def _one(self, instruction: Instruction) -> None:
        _logger.info("job %s: instruction %d started", instruction.job_id, instruction.number)
        try:
            pr_link = await self._carry_out(instruction)
        except JobServerError as error:
            _logger.warning("job %s: failed: %s", instruction.job_id, error)
            await self._finish(instruction, failure=str(error) or type(error).__name__)
        except Exception as error:
            _logger.exception("job %s: failed unexpectedly", instruction.job_id)
            await self._finish(instruction, failure=f"unexpected: {type(error).__name__}")
        else:
            await self._finish(instruction, pr_link=pr_link)
            _logger.info("job %s: instruction %d done", instruction.job_id, instruction.number)

    async def _finish(
        self, instruction: Instruction, *, pr_link: str | None = None, failure: str | None = None
    ) -> None:
        await self._recorded(partial(self._jobs.finish, instruction, pr_link=pr_link, failure=failure))

    async def _recorded(self, write: Callable[[], Awaitable[T]]) -> T:
        """Insist: with a locked database or a full disk the work is done all the same, and must not be lost."""
        has_failed = False
        while True:
            try:
                return await write()
            except sqlite3.Error as error:
                if not has_failed:
                    _logger.warning("the job table cannot be written (%s); trying again until it can", error)
                has_failed = True
                await asyncio.sleep(self._pause)
