"""Runs a process until a signal ends it, and exempts permanent objects from garbage collection."""

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Stoppable(Protocol):
    """Something that runs until it is stopped."""

    async def stop(self) -> None:
        """Stops it."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """Returns the signals that end a process: SIGTERM, SIGINT (Ctrl-C), and SIGHUP unless `nohup` has it ignored."""
    ends_on_hangup = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return (signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if ends_on_hangup else ()))


async def run_until_signal(start: Callable[[], Coroutine[Any, Any, Stoppable]]) -> None:
    """Starts something and stops it on a signal. A signal during the start cancels it."""
    signalled = asyncio.Event()
    starting = asyncio.create_task(start())

    def end() -> None:
        signalled.set()
        starting.cancel()  # has no effect once it has started

    for number in ending_signals():
        asyncio.get_running_loop().add_signal_handler(number, end)
    try:
        started = await starting
    except asyncio.CancelledError:
        if signalled.is_set():
            return
        raise
    await signalled.wait()
    await started.stop()


@contextmanager
def lasting_imports() -> Iterator[None]:
    """Excludes what is imported within from garbage collection, which would look through it again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def freeze_startup_objects() -> None:
    """Excludes everything else that the start has built from garbage collection.

    A full collection, which blocks every thread, then only has to examine newer objects.
    """
    gc.collect()
    gc.freeze()
