"""An event loop in which nothing sleeps: time jumps to the next timer as soon as nothing else can happen."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Moves the time instead of waiting for a timer; really waits while a database is busy."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.databases_at_work = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0 or self.databases_at_work:
            return super().select(timeout)
        events = super().select(0)
        if not events:
            self.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when nothing else can happen."""

    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now

    def advance(self, seconds: float) -> None:
        """Advances the time, as if nothing ran."""
        self.selector.now += seconds

    async def in_real_time(self, work: Awaitable[T]) -> T:
        """Awaits database work, which no jump in time may overtake."""
        self.selector.databases_at_work += 1
        try:
            return await work
        finally:
            self.selector.databases_at_work -= 1


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Runs a test in a virtual loop of its own."""

    @wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*arguments, **named))

    return run
