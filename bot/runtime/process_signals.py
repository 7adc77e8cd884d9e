"""Runs something until the process is asked to end."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, Protocol


class Stoppable(Protocol):
    """What runs once it has started."""

    async def stop(self) -> None:
        """Ends it."""


async def run_until_signal(start: Callable[[], Coroutine[Any, Any, Stoppable]]) -> None:
    """Starts something, and stops it at SIGTERM or Ctrl-C. A start that is under way then is cancelled."""
    signalled = asyncio.Event()
    starting = asyncio.create_task(start())

    def end() -> None:
        signalled.set()
        starting.cancel()  # without effect once it has started

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end)
    try:
        started = await starting
    except asyncio.CancelledError:
        if signalled.is_set():
            return
        raise
    await signalled.wait()
    await started.stop()
