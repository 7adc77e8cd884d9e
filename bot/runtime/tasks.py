"""Background tasks. References are kept until they end, so that none is garbage-collected, lost or left behind; under a
supervisor, a task that ends is logged, reported and restarted.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from bot.runtime.backoff import Backoff
from bot.runtime.health import RECOVERY_SECONDS, ComponentStatus, Outage

logger = logging.getLogger(__name__)

T = TypeVar("T")


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


async def watched(work: Coroutine[Any, Any, T], watch: Coroutine[Any, Any, NoReturn]) -> T:
    """Runs `work` until it is done or `watch` raises, whose error is raised then; a result at that same moment counts.

    At the end, what still runs is cancelled and awaited.
    """
    working, watching = asyncio.create_task(work), asyncio.create_task(watch)
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else watching.result()
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


def log_fault(task: asyncio.Task[Any]) -> None:
    """Logs the exception that ended a task. A done callback for tasks that nobody awaits."""
    if not task.cancelled() and (fault := task.exception()) is not None:
        logger.error("%s ended unexpectedly", task.get_name(), exc_info=fault)


RESTART_BACKOFF = Backoff(first=1.0, longest=60.0)


class UnexpectedReturn(Exception):
    """A function that should run forever has returned."""


class Supervisor:
    """Runs tasks that nobody awaits. After a restart, a task counts as healthy after `recovery` seconds."""

    def __init__(self, *, recovery: float = RECOVERY_SECONDS) -> None:
        self._recovery = recovery
        self._tasks = BackgroundTasks()
        self._outages: dict[asyncio.Task[None], Outage] = {}
        self._stopping = asyncio.Event()

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Runs `work` in a task, and restarts it whenever it ends, until it is cancelled or `stop_restarting`."""
        outage = Outage(name, asyncio.get_running_loop().time, recovery=self._recovery)
        task = self._tasks.spawn(self._run_forever(name, outage, work), name=name)
        self._outages[task] = outage
        task.add_done_callback(self._outages.pop)
        return task

    def statuses(self) -> Iterator[ComponentStatus]:
        """Yields the tasks that have ended and, since their restart, have not run long enough to count as healthy."""
        for task, outage in self._outages.items():
            if outage.ongoing():
                yield replace(outage.status(f"{task.get_name()} task"), recovering=False)

    def stop_restarting(self) -> None:
        """From now on, tasks that end are not restarted."""
        self._stopping.set()

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - returns at the timeout instead of raising
        """Cancels all tasks and waits up to `timeout` seconds for them to end."""
        self.stop_restarting()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._tasks.cancel()

    async def _run_forever(self, name: str, outage: Outage, work: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while not self._stopping.is_set():
            error = await _wait_for_end(work)
            if self._stopping.is_set():
                return
            known = outage.status(name)
            failures = failures + 1 if outage.ongoing() else 1
            delay = RESTART_BACKOFF.delay(failures)
            reason = f"it ended unexpectedly ({type(error).__name__})"
            outage.record_failure(reason, quiet=True)
            if reason != known.reason:  # otherwise its traceback is in the log
                logger.error("%s ended unexpectedly; it is restarted in %.0f s", name, delay, exc_info=error)
            await self._sleep(delay)
            outage.record_success()

    async def _sleep(self, seconds: float) -> None:
        """Sleeps, but no longer than until `stop_restarting`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


async def _wait_for_end(work: Callable[[], Awaitable[None]]) -> Exception:
    """Awaits `work` and returns why it ended.

    A CancelledError propagates only if this task itself is cancelled. One that leaks out of something that `work`
    awaits is an error like any other.
    """
    try:
        await work()
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return RuntimeError(f"cancelled from within: {cancelled}")
    except Exception as error:  # noqa: BLE001 - no error may end the supervision
        return error
    return UnexpectedReturn("it should run forever")
