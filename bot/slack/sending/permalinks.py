"""Links to messages in Slack, by chat.getPermalink, which needs no scope; and who asked, for job APIs that accept it.

Both are looked up when a request is sent, never before an acknowledgement. If a link is not available quickly, it is
left out.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatError
from bot.jobapi.models import Requester
from bot.ports.job_api import Requesters
from bot.ports.slack import DisplayNames
from bot.runtime.untrusted_json import LenientModel, Text
from bot.slack.rendering.text import safe_url
from bot.slack.sending.expiring_cache import ExpiringCache
from bot.slack.sending.web_api import call

logger = logging.getLogger(__name__)

_KEPT = 86_400.0
"""Seconds for which a link is cached, in the memory of the process."""


class PermalinkAnswer(LenientModel):
    """The answer of chat.getPermalink."""

    permalink: Text = ""


class Permalinks:
    """One per process, shared by all callers. `monotonic` returns the time in seconds."""

    def __init__(self, client: AsyncWebClient, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._cache = ExpiringCache[str](seconds=_KEPT, monotonic=monotonic)

    async def of(self, channel_id: str, message_ts: str) -> str:
        """Returns the link to a message; empty if Slack gives none. Raises ChatError."""
        return await self._cache.get(f"{channel_id}/{message_ts}", self._fetch)

    async def _fetch(self, place: str) -> str:
        channel_id, _, ts = place.partition("/")
        return PermalinkAnswer.read(
            await call(self._client.chat_getPermalink(channel=channel_id, message_ts=ts))
        ).permalink


PATIENCE = 2.0
"""Seconds that a request waits for the link to its thread."""


class SlackRequesters(Requesters):
    """One per process."""

    def __init__(self, permalinks: Permalinks, people: DisplayNames, *, patience: float = PATIENCE) -> None:
        self._permalinks = permalinks
        self._people = people
        self._patience = patience

    async def requester(self, person_id: str, channel_id: str, thread_ts: str) -> Requester:
        """See Requesters. If the name is not available, the id is used."""
        names, url = await asyncio.gather(self._people.names([person_id]), self._permalink(channel_id, thread_ts))
        return Requester(names.get(person_id) or person_id, person_id, url)

    async def _permalink(self, channel_id: str, message_ts: str) -> str | None:
        if not message_ts:
            return None
        try:
            async with asyncio.timeout(self._patience):
                return safe_url(await self._permalinks.of(channel_id, message_ts))
        except (ChatError, TimeoutError) as error:
            reason = error if isinstance(error, ChatError) else "no_answer_in_time"
            logger.info("a request is sent without the link to its thread: %s", reason)
            return None
