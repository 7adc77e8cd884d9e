"""Who asked, as a job API is told that takes it: looked up when a request is sent, never before an acknowledgement.

Like a name, the thread's address is a courtesy: where it cannot be had in a moment, it is left out.
"""

import asyncio
import logging

from bot.domain.requests.request import Requester
from bot.errors import ChatError
from bot.ports.ports import People, Requesters
from bot.slack.rendering.text import safe_url
from bot.slack.sending.permalinks import Permalinks

logger = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds that a request waits for its thread's address."""


class SlackRequesters(Requesters):
    """One for a process."""

    def __init__(self, permalinks: Permalinks, people: People, *, patience: float = PATIENCE) -> None:
        self._permalinks = permalinks
        self._people = people
        self._patience = patience

    async def requester(self, person_id: str, channel_id: str, thread_ts: str) -> Requester:
        """See Requesters. Where the name cannot be had, the id has to do."""
        names, url = await asyncio.gather(self._people.names([person_id]), self._permalink(channel_id, thread_ts))
        return Requester(names.get(person_id) or person_id, person_id, url)

    async def _permalink(self, channel_id: str, message_ts: str) -> str | None:
        if not message_ts:
            return None
        try:
            async with asyncio.timeout(self._patience):
                return safe_url(await self._permalinks.of(channel_id, message_ts))
        except (ChatError, TimeoutError) as error:
            reason = error.reason if isinstance(error, ChatError) else "no_answer_in_time"
            logger.info("a request goes out without its thread's address (%s)", reason)
            return None
