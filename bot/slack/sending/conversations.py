"""Reads threads and channels: Conversations and Channels of bot.ports.slack, by Slack's conversations.replies and
conversations.info.
"""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from pydantic import StrictBool
from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.context.slack_files import ThreadMessage, people_in, with_known_names
from bot.domain.people.members import ChannelInfo
from bot.ports.slack import ChannelReader, Conversations, DisplayNames
from bot.runtime.text import displayable
from bot.runtime.untrusted_json import LenientModel, Objects, Text
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.message_parts.thread_messages import thread_message
from bot.slack.sending.expiring_cache import ExpiringCache
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import AnswerPage, call

_PAGE_SIZE, _MOST_PAGES = 200, 25
"""Slack returns a thread from its beginning, and recommends pages of at most 200. Of a thread with more than 5,000
messages, only the first 5,000 are read.
"""
_NAMES_AT_ONCE, _MOST_NAMED = 20, 60
"""Maximum number of people whose names are looked up; others are shown by their id."""


class RepliesPage(AnswerPage):
    """The answer of conversations.replies."""

    messages: Objects[SlackMessage] = ()


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
        async for message in self._messages(channel_id, thread_ts, after_ts=after_ts, before_ts=before_ts):
            read = None if self._identity.wrote(message) else thread_message(message)
            if read is not None and read.ts > seen and (not before_ts or read.ts < before_ts):
                last.append(read)
                seen = read.ts
        names = await self._names(people_in(tuple(last)))
        return tuple(with_known_names(message, names) for message in last)

    async def _messages(
        self, channel_id: str, thread_ts: str, *, after_ts: str, before_ts: str
    ) -> AsyncIterator[SlackMessage]:
        """Yields the messages of a thread, oldest first. Each page can begin with the thread's first message again."""
        window = {key: ts for key, ts in (("oldest", after_ts), ("latest", before_ts)) if ts}
        options: dict[str, Any] = {"limit": _PAGE_SIZE, **window}
        for _ in range(_MOST_PAGES):
            answer = await call(self._client.conversations_replies(channel=channel_id, ts=thread_ts, **options))
            replies = RepliesPage.read(answer)
            for message in replies.messages:
                yield message
            options["cursor"] = replies.next_cursor
            if not options["cursor"]:
                return

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
        return read_channel(channel_id, ChannelAnswer.read(answer).channel)


class DescribedChannel(LenientModel):
    """A channel as Slack describes it. Unless Slack says otherwise, it counts as private and shared with outsiders.
    Its `is_shared` is also true among the workspaces of one organization.
    """

    name: Text = ""
    is_ext_shared: StrictBool = True
    is_private: StrictBool = True
    is_im: StrictBool = False


class ChannelAnswer(LenientModel):
    """The answer of conversations.info."""

    channel: DescribedChannel = DescribedChannel()


def read_channel(channel_id: str, channel: DescribedChannel) -> ChannelInfo:
    """Returns the properties of a channel that permissions depend on."""
    return ChannelInfo(
        id=channel_id,
        name=displayable(channel.name)[:_LONGEST_NAME],
        is_shared_outside=channel.is_ext_shared,
        is_private=channel.is_private,
        is_direct=channel.is_im,
    )
