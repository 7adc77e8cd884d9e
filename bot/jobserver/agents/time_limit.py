"""How long a turn may take: time that passes while a person is asked does not count."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class TimeLimit:
    """In seconds, for one turn."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout: asyncio.Timeout | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Raises TimeoutError where what is done within takes longer."""
        async with asyncio.timeout(self._seconds) as timeout:
            self._timeout = timeout
            try:
                yield
            finally:
                self._timeout = None

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Within it, no time passes; one such piece of work at a time."""
        now, timeout = asyncio.get_running_loop().time, self._timeout
        end = timeout.when() if timeout else None
        if timeout is None or end is None:
            yield
            return
        left = end - now()
        timeout.reschedule(None)
        try:
            yield
        finally:
            if timeout is self._timeout and not timeout.expired():
                timeout.reschedule(now() + left)
