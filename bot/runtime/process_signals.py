"""The process: it runs until it is asked to end, and its garbage collector leaves alone what stays."""

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine
from typing import Any, Protocol


class Stoppable(Protocol):
    """What runs once it has started."""

    async def stop(self) -> None:
        """Ends it."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """Returns what asks a process to end: SIGTERM, Ctrl-C, and SIGHUP as its terminal closes, which `nohup` ignores."""
    hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return (signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if hangs_up else ()))


async def run_until_signal(start: Callable[[], Coroutine[Any, Any, Stoppable]]) -> None:
    """Starts something, and stops it when the process is asked to end. A start that is under way then is cancelled."""
    signalled = asyncio.Event()
    starting = asyncio.create_task(start())

    def end() -> None:
        signalled.set()
        starting.cancel()  # without effect once it has started

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


def leave_out_what_stays() -> None:
    """Takes what the start has built out of the collector's sight: a full collection, which holds up every thread, then
    looks only at what came since.
    """
    gc.collect()
    gc.freeze()
