"""Tasks that run in the background: kept until they end, so that none is collected, lost or left behind."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


class BackgroundTasks:
    """The tasks of one owner, who ends them with `drain` or `cancel`.

    Unlike asyncio.TaskGroup, it outlives any block of code, and one task's exception ends no other task.

    Args:
        expected: Exceptions that whoever awaits a task deals with. Any other one is logged when it ends a task.
    """

    def __init__(self, *, expected: type[Exception] | tuple[type[Exception], ...] = ()) -> None:
        self._tasks = set[asyncio.Task[Any]]()
        self._expected = expected

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        """The tasks that run now, whatever is spawned or ends meanwhile."""
        return iter(tuple(self._tasks))

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Runs a coroutine in a task of this name, which stands in the log where an exception ends it."""
        task = asyncio.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def drain(self, timeout: float) -> None:  # noqa: ASYNC109 - the tasks that are late are cancelled, not the caller
        """Waits for all tasks, those spawned meanwhile included; cancels what still runs after `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        await self.cancel()

    async def cancel(self) -> None:
        """Cancels all tasks and waits for their end."""
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or not isinstance(task.exception(), self._expected):
            log_fault(task)


def log_fault(task: asyncio.Task[Any]) -> None:
    """Logs the exception that ended a task; a done callback for tasks that nobody awaits."""
    if not task.cancelled() and (fault := task.exception()) is not None:
        logger.error("%s ended unexpectedly", task.get_name(), exc_info=fault)
