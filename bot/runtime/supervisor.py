"""Keeps running what is to run for as long as the process does: what ends is logged, shown, and started again."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator

from bot.runtime.backoff import Backoff
from bot.runtime.health.outages import RECOVERY_SECONDS, Outage
from bot.runtime.health.report import ComponentStatus
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)

RESTART_BACKOFF = Backoff(first=1.0, longest=60.0)


class EndedByItself(Exception):
    """What should run for ever has returned."""


class Supervisor:
    """Runs tasks that nobody awaits. `recovery`: seconds after a restart until a task is trusted again."""

    def __init__(self, *, recovery: float = RECOVERY_SECONDS) -> None:
        self._recovery = recovery
        self._tasks = BackgroundTasks()
        self._outages: dict[asyncio.Task[None], Outage] = {}
        self._stopping = asyncio.Event()

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Runs `work` in a task of this name, again whenever it ends, until it is cancelled or `stop_restarting`."""
        outage = Outage(name, asyncio.get_running_loop().time, recovery=self._recovery)
        task = self._tasks.spawn(self._run_for_ever(name, outage, work), name=name)
        self._outages[task] = outage
        task.add_done_callback(self._outages.pop)
        return task

    def statuses(self) -> Iterator[ComponentStatus]:
        """Yields what has ended and has not yet run long enough to be trusted again."""
        for task, outage in self._outages.items():
            if outage.ongoing:
                yield ComponentStatus(f"{task.get_name()} task", outage.seconds(), str(outage.reason))

    def stop_restarting(self) -> None:
        """From now on what ends is not started again."""
        self._stopping.set()

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - it returns then, and raises nothing
        """Cancels everything, and waits for its end, `timeout` seconds at most."""
        self.stop_restarting()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._tasks.cancel()

    async def _run_for_ever(self, name: str, outage: Outage, work: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while not self._stopping.is_set():
            error = await _error_that_ends(work)
            if self._stopping.is_set():
                return
            failures = failures + 1 if outage.ongoing else 1
            delay = RESTART_BACKOFF.delay(failures)
            _record_end(name, outage, error, delay)
            await self._sleep(delay)
            outage.record_success()  # unless it ends again

    async def _sleep(self, seconds: float) -> None:
        """Waits, but not beyond `stop_restarting`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


def _record_end(name: str, outage: Outage, error: Exception, delay: float) -> None:
    """Notes that a task has ended; logs it, with the traceback, unless it ended in the same way the last time."""
    reason = f"it ended unexpectedly ({type(error).__name__})"
    known = outage.ongoing and outage.reason == reason
    outage.record_failure(reason, quiet=True)
    if not known:
        words = "%s ended unexpectedly, and is started again from now on; this time in %.0f s"
        logger.error(words, name, delay, exc_info=error)


async def _error_that_ends(work: Callable[[], Awaitable[None]]) -> Exception:
    """Awaits `work`, and returns why it is over. A cancellation is passed on only where this task itself is cancelled:
    one that leaks out of something `work` awaits is an error like others.
    """
    try:
        await work()
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return RuntimeError(f"cancelled from within: {cancelled}")
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not end what is to run for ever
        return error
    return EndedByItself("it should run for ever")
