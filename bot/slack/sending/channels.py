"""What a channel is: bot.ports.slack.Channels over Slack's conversations.info."""

import time
from collections.abc import Callable
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.people.members import Channel
from bot.ports.slack import Channels
from bot.runtime.json_fields import text_at
from bot.runtime.misleading_characters import displayable
from bot.slack.sending.expiring_cache import ExpiringCache
from bot.slack.sending.web_api import call

_KEPT = 300.0
"""Seconds for which a channel counts as known: so late is noticed that it was shared with another organization."""
_LONGEST_NAME = 100


class SlackChannels(Channels):
    """One for a process."""

    def __init__(self, client: AsyncWebClient, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._cache = ExpiringCache[Channel](seconds=_KEPT, monotonic=monotonic)

    async def channel(self, channel_id: str) -> Channel:
        """See Channels. Of a direct message nothing needs to be asked: it is between one person and Pagehand."""
        if channel_id.startswith("D"):
            return Channel(channel_id, "", is_shared_outside=False, is_private=True, is_direct=True)
        return await self._cache.get(channel_id, self._fetch)

    async def _fetch(self, channel_id: str) -> Channel:
        return read_channel(
            channel_id, (await call(self._client.conversations_info(channel=channel_id))).get("channel")
        )


def read_channel(channel_id: str, channel: Any) -> Channel:
    """Returns a channel as Slack describes it. What is not said to be ours alone counts as shared, and what is not said
    to be public as private. Its `is_shared` is also true among the workspaces of one organization.
    """
    described = channel if isinstance(channel, dict) else {}
    return Channel(
        id=channel_id,
        name=displayable(text_at(described, "name"))[:_LONGEST_NAME],
        is_shared_outside=described.get("is_ext_shared") is not False,
        is_private=described.get("is_private") is not False,
        is_direct=described.get("is_im") is True,
    )
