"""The heartbeat of a process that receives from Slack: notes in the database until when it listened."""

import asyncio
import logging
from collections.abc import Callable

from bot.domain.gaps.gap import BEAT, Listening
from bot.errors import StoreError
from bot.store.store import Store

logger = logging.getLogger(__name__)

_LOOK_INTERVAL = 0.5


class Heartbeat:
    """`listening` returns since when this process listens, and until when it certainly did (None: it does not now).
    `on_gap` is called if nobody listened for a time, which is a row by then.
    """

    def __init__(
        self, store: Store, owner: str, listening: Callable[[], Listening | None], *, on_gap: Callable[[], None]
    ) -> None:
        self._store = store
        self._owner = owner
        self._listening = listening
        self._on_gap = on_gap
        self._listened_for = 0.0

    async def run(self) -> None:
        """Notes it regularly, and at once when the process listens again."""
        loop = asyncio.get_running_loop()
        noted_at = loop.time()
        while True:
            await asyncio.sleep(_LOOK_INTERVAL)
            now = self._listening()
            if now is not None and (loop.time() - noted_at >= BEAT or -now.since < self._listened_for):
                noted_at = loop.time()
                await self.beat()

    async def beat(self) -> None:
        """Notes it now. If the database is unavailable, a later beat shows the gap."""
        now = self._listening()
        if now is None:
            return
        try:
            is_gap = await self._store.transact(lambda tx: tx.gaps.listens(self._owner, now))
        except StoreError as error:
            logger.debug("it could not be noted that this process listens: %s", error)
            return
        self._listened_for = -now.since
        if is_gap:
            logger.info("nobody listened to Slack for a time: its history is read")
            self._on_gap()

    async def end(self) -> None:
        """Notes that this process listens no more. Raises StoreError."""
        await self._store.transact(lambda tx: tx.gaps.listens_no_more(self._owner))
