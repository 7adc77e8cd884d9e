"""The mirror is made when the server starts, so that no job has to wait for it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from enum import StrEnum

from bot.jobserver.errors import GitError
from bot.jobserver.repository.base_branch import BaseBranch
from bot.jobserver.repository.mirror import Mirror
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
_PAUSE_S = 60.0


class MirrorState(StrEnum):
    """How far it is, in the words of the health."""

    BEING_MADE = "being made"
    MADE = "made"
    OUT_OF_REACH = "out of reach"


class FirstFetch:
    """Fetches the base once, and tries again as long as that fails; jobs that come meanwhile wait for their turn.

    `pause` is in seconds.
    """

    def __init__(self, mirror: Mirror, base: BaseBranch, *, pause: float = _PAUSE_S) -> None:
        self.state = MirrorState.BEING_MADE
        self._mirror = mirror
        self._base = base
        self._pause = pause

    @asynccontextmanager
    async def running(self, then: Callable[[], Coroutine[None, None, None]]) -> AsyncIterator["FirstFetch"]:
        """In the background, until the end of the block; `then` is run when the mirror is there."""
        tasks = BackgroundTasks()
        tasks.spawn(self._run(then), name="what is made ready for jobs")
        try:
            yield self
        finally:
            await tasks.cancel()

    async def _run(self, then: Callable[[], Coroutine[None, None, None]]) -> None:
        await self._fetch()
        while self.state is not MirrorState.MADE:
            await asyncio.sleep(self._pause)
            await self._fetch()
        await then()

    async def _fetch(self) -> None:
        try:
            await self._mirror.fetch(self._base.name)
        except GitError as error:
            if self.state is not MirrorState.OUT_OF_REACH:
                logger.warning("the mirror of the repository cannot be made yet: %s", error)
            self.state = MirrorState.OUT_OF_REACH
        else:
            self.state = MirrorState.MADE
