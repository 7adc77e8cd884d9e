"""Background tasks. References are kept until they end, so that none is garbage-collected, lost or left behind."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
W = TypeVar("W")

logger = logging.getLogger(__name__)


class BackgroundTasks:
    """The tasks of one owner, who ends them with `drain` or `cancel`.

    Unlike an asyncio.TaskGroup, it is not tied to a block of code, and an exception in one task does not end others.

    Args:
        expected: Exceptions that the code awaiting a task handles. Any other exception that ends a task is logged.
    """

    def __init__(self, *, expected: type[Exception] | tuple[type[Exception], ...] = ()) -> None:
        self._tasks = set[asyncio.Task[Any]]()
        self._expected = expected

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        """Iterates over a snapshot of the running tasks."""
        return iter(tuple(self._tasks))

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Runs a coroutine in a task. Its `name` appears in the log if an exception ends it."""
        task = asyncio.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def drain(self, timeout: float) -> None:  # noqa: ASYNC109 - cancels the remaining tasks, not the caller
        """Waits for all tasks, including those spawned meanwhile; cancels those that run longer than `timeout`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        await self.cancel()

    async def cancel(self) -> None:
        """Cancels all tasks and waits until they have ended."""
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or not isinstance(task.exception(), self._expected):
            log_fault(task)


@contextlib.asynccontextmanager
async def both_running(
    work: Coroutine[Any, Any, T], watch: Coroutine[Any, Any, W]
) -> AsyncIterator[tuple[asyncio.Task[T], asyncio.Task[W]]]:
    """Runs two things at the same time; at the end of the block, what still runs is cancelled and awaited."""
    running = asyncio.create_task(work), asyncio.create_task(watch)
    try:
        yield running
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def log_fault(task: asyncio.Task[Any]) -> None:
    """Logs the exception that ended a task. A done callback for tasks that nobody awaits."""
    if not task.cancelled() and (fault := task.exception()) is not None:
        logger.error("%s ended unexpectedly", task.get_name(), exc_info=fault)
