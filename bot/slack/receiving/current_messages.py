"""Reads what became of messages: CurrentMessages of bot.ports.slack, by Slack's history."""

from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.domain.people.members import ChannelInfo
from bot.domain.requests.request import Reply
from bot.errors import ChatRejected
from bot.ports.slack import ChannelReader, CurrentMessages
from bot.runtime.untrusted_json import Objects
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.receiving.history import RawMessage, changed
from bot.slack.receiving.payloads.edited_message import TOMBSTONE, read_edit
from bot.slack.receiving.payloads.events import RevisionPayload
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import AnswerPage, call

_PAGE_SIZE, _MOST_PAGES = 200, 25


class _Page(AnswerPage):
    messages: Objects[dict[str, Any]] = ()


class SlackCurrentMessages(CurrentMessages):
    """One per process. `identity` is ours in Slack."""

    def __init__(self, client: AsyncWebClient, identity: Identity, channels: ChannelReader) -> None:
        self._client = client
        self._identity = identity
        self._channels = channels

    async def versions(self, channel_id: str, thread_ts: str, *, since_ts: str) -> Mapping[str, Reply | None]:
        """See CurrentMessages. Reads at most 5,000 messages."""
        channel = await self._channels.channel(channel_id)
        versions: dict[str, Reply | None] = {}
        try:
            async for raw in self._messages(channel_id, thread_ts, since_ts):
                message = SlackMessage.read(raw)
                if message.subtype != TOMBSTONE:
                    versions[message.ts] = self._edit(raw, channel) if message.edited.ts else None
        except ChatRejected as rejected:
            if rejected.reason != "thread_not_found":
                raise
        return versions

    async def _messages(self, channel_id: str, thread_ts: str, since_ts: str) -> AsyncIterator[RawMessage]:
        cursor = ""
        for _ in range(_MOST_PAGES):
            page = _Page.read(await call(self._page(channel_id, thread_ts, since_ts, cursor)))
            for message in page.messages:
                yield message
            cursor = page.next_cursor
            if not cursor:
                return
        raise ChatRejected("too_many_messages")

    def _page(self, channel_id: str, thread_ts: str, since_ts: str, cursor: str) -> Awaitable[AsyncSlackResponse]:
        options: dict[str, Any] = {"channel": channel_id, "oldest": since_ts, "inclusive": True, "limit": _PAGE_SIZE}
        if cursor:
            options["cursor"] = cursor
        if thread_ts:
            return self._client.conversations_replies(ts=thread_ts, **options)
        return self._client.conversations_history(**options)

    def _edit(self, raw: RawMessage, channel: ChannelInfo) -> Reply | None:
        payload = RevisionPayload.read(changed(raw, channel, self._identity))
        edit = read_edit(payload, self._identity, concerns_us=True)
        return None if edit is None else edit.reply
