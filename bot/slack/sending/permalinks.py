"""The addresses of messages in Slack, by chat.getPermalink, which needs no scope: asked for once for each message."""

import time
from collections.abc import Callable

from slack_sdk.web.async_client import AsyncWebClient

from bot.runtime.json_fields import text_at
from bot.slack.sending.expiring_cache import ExpiringCache
from bot.slack.sending.web_api import call

_KEPT = 86_400.0
"""Seconds for which an address counts as known. It is kept in memory: another process, or the next one, asks again."""


class Permalinks:
    """One for a process, for all who ask. `monotonic` tells the time in seconds."""

    def __init__(self, client: AsyncWebClient, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._cache = ExpiringCache[str](seconds=_KEPT, monotonic=monotonic)

    async def of(self, channel_id: str, message_ts: str) -> str:
        """Returns the address of a message; empty where Slack tells none. Raises ChatError."""
        return await self._cache.get(f"{channel_id}/{message_ts}", self._fetch)

    async def _fetch(self, place: str) -> str:
        channel_id, _, ts = place.partition("/")
        return text_at(await call(self._client.chat_getPermalink(channel=channel_id, message_ts=ts)), "permalink")
