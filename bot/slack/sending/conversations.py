"""Threads, channels and links to messages: Conversations and ChannelReader of bot.ports.slack, by Slack's
conversations.replies, conversations.info and chat.getPermalink; and who asked, for job APIs that accept it.

A link is looked up when a request is sent, never before an acknowledgement. If it is not available quickly, it is left
out.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import StrictBool
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.domain.messages import ThreadMessage, people_in, with_known_names
from bot.domain.people import ChannelInfo
from bot.errors import ChatError, ChatRejected
from bot.jobapi.models import Requester
from bot.ports.job_api import Requesters
from bot.ports.slack import ChannelReader, Conversations, DisplayNames
from bot.runtime.text import displayable
from bot.runtime.untrusted_json import LenientModel, Text, objects_at, text_at
from bot.slack.message_parts.contents import thread_message
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.rendering.text import safe_url
from bot.slack.sending.expiring_cache import ExpiringCache
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import call, next_cursor

logger = logging.getLogger(__name__)

PAGE_SIZE, _MOST_PAGES = 200, 25
"""Slack returns a thread from its beginning, a channel from its end, and recommends pages of at most 200. Of a longer
conversation, only the first 5,000 messages are read.
"""
_NAMES_AT_ONCE, _MOST_NAMED = 20, 60
"""Maximum number of people whose names are looked up; others are shown by their id."""


def message_page(
    client: AsyncWebClient, channel_id: str, thread_ts: str, **options: object
) -> Awaitable[AsyncSlackResponse]:
    """Asks for a page of a thread's messages or, without `thread_ts`, of the channel's. Empty options are left out."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value}
    if thread_ts:
        return client.conversations_replies(channel=channel_id, ts=thread_ts, limit=PAGE_SIZE, **given)
    return client.conversations_history(channel=channel_id, limit=PAGE_SIZE, **given)


async def raw_messages(
    client: AsyncWebClient, channel_id: str, thread_ts: str, *, all_or_none: bool = False, **options: object
) -> AsyncIterator[dict[str, Any]]:
    """Yields the messages of `message_page`, page after page. Each page of a thread can begin with its first message
    again. Raises ChatError; with `all_or_none` also if there are more messages than are read.
    """
    cursor = ""
    for _ in range(_MOST_PAGES):
        answer = await call(message_page(client, channel_id, thread_ts, cursor=cursor, **options))
        for message in objects_at(answer, "messages"):
            yield message
        cursor = next_cursor(answer)
        if not cursor:
            return
    if all_or_none:
        raise ChatRejected("too_many_messages")


class SlackConversations(Conversations):
    """One per process. `identity` is ours in Slack: our own messages are left out."""

    def __init__(self, client: AsyncWebClient, identity: Identity, people: DisplayNames) -> None:
        self._client = client
        self._identity = identity
        self._people = people

    async def thread(
        self, channel_id: str, thread_ts: str, *, after_ts: str = "", before_ts: str = "", limit: int = 51
    ) -> Sequence[ThreadMessage]:
        """See Conversations."""
        last: deque[ThreadMessage] = deque(maxlen=limit)
        seen = after_ts
        async for raw in raw_messages(self._client, channel_id, thread_ts, oldest=after_ts, latest=before_ts):
            message = SlackMessage.read(raw)
            read = None if self._identity.wrote(message) else thread_message(message)
            if read is not None and read.ts > seen and (not before_ts or read.ts < before_ts):
                last.append(read)
                seen = read.ts
        names = await self._names(people_in(tuple(last)))
        return tuple(with_known_names(message, names) for message in last)

    async def _names(self, ids: Sequence[str]) -> Mapping[str, str]:
        names: dict[str, str] = {}
        for start in range(0, min(len(ids), _MOST_NAMED), _NAMES_AT_ONCE):
            names |= await self._people.names(ids[start : start + _NAMES_AT_ONCE])
        return names


_KEPT = 300.0
"""Seconds for which a channel's description is cached, and so the delay until sharing with others is noticed."""
_LONGEST_NAME = 100


class SlackChannels(ChannelReader):
    """One per process."""

    def __init__(self, client: AsyncWebClient, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._cache = ExpiringCache[ChannelInfo](seconds=_KEPT, monotonic=monotonic)

    async def channel(self, channel_id: str) -> ChannelInfo:
        """See Channels. A direct message needs no call: it is between one person and Pagehand."""
        if channel_id.startswith("D"):
            return ChannelInfo(channel_id, "", is_shared_outside=False, is_private=True, is_direct=True)
        return await self._cache.get(channel_id, self._fetch)

    async def _fetch(self, channel_id: str) -> ChannelInfo:
        answer = await call(self._client.conversations_info(channel=channel_id))
        return read_channel(channel_id, DescribedChannel.read(answer.get("channel")))


class DescribedChannel(LenientModel):
    """A channel as Slack describes it. Unless Slack says otherwise, it counts as private and shared with outsiders.
    Its `is_shared` is also true among the workspaces of one organization.
    """

    name: Text = ""
    is_ext_shared: StrictBool = True
    is_private: StrictBool = True
    is_im: StrictBool = False


def read_channel(channel_id: str, channel: DescribedChannel) -> ChannelInfo:
    """Returns the properties of a channel that permissions depend on."""
    return ChannelInfo(
        id=channel_id,
        name=displayable(channel.name)[:_LONGEST_NAME],
        is_shared_outside=channel.is_ext_shared,
        is_private=channel.is_private,
        is_direct=channel.is_im,
    )


_LINKS_KEPT = 86_400.0
"""Seconds for which a link is cached, in the memory of the process."""


class Permalinks:
    """One per process, shared by all callers."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._cache = ExpiringCache[str](seconds=_LINKS_KEPT)

    async def soon(self, channel_id: str, message_ts: str, *, seconds: float) -> str:
        """Returns the link to a message; empty if there is no `ts`, or no link within so many seconds."""
        if not message_ts:
            return ""
        try:
            async with asyncio.timeout(seconds):
                return await self._cache.get(f"{channel_id}/{message_ts}", self._fetch)
        except (ChatError, TimeoutError) as error:
            reason = error if isinstance(error, ChatError) else "no_answer_in_time"
            logger.info("the link to a message is left out: %s", reason)
            return ""

    async def _fetch(self, place: str) -> str:
        channel_id, _, ts = place.partition("/")
        return text_at(await call(self._client.chat_getPermalink(channel=channel_id, message_ts=ts)), "permalink")


_PATIENCE = 2.0
"""Seconds that a request waits for the link to its thread."""


class SlackRequesters(Requesters):
    """One per process."""

    def __init__(self, permalinks: Permalinks, people: DisplayNames) -> None:
        self._permalinks = permalinks
        self._people = people

    async def requester(self, person_id: str, channel_id: str, thread_ts: str) -> Requester:
        """See Requesters. If the name is not available, the id is used."""
        looking_up = self._permalinks.soon(channel_id, thread_ts, seconds=_PATIENCE)
        names, url = await asyncio.gather(self._people.names([person_id]), looking_up)
        return Requester(names.get(person_id) or person_id, person_id, safe_url(url))
