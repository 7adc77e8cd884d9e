"""Tells the operator in Slack that something in Pagehand's set-up broke."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.errors import ChatNotInChannel, ChatRejected
from bot.runtime.json_fields import text_at
from bot.slack.rendering.text import escape
from bot.slack.rendering.words.at_once import SETUP_FAULT
from bot.slack.sending.identity import Identity
from bot.slack.sending.posted_messages import PAGE_SIZE, metadata_with, oldest_since, posted_with
from bot.slack.sending.web_api import call

T = TypeVar("T")

_EVENT_TYPE = "pagehand_fault"


class SlackOperator:
    """bot.ports.slack.Operator. `address` is the id of a person or of a channel.

    Slack names the conversation with a person in its answer to a post there, and none of the app's scopes allows
    looking it up. Until then, nothing that was posted there can be found.
    """

    def __init__(self, client: AsyncWebClient, identity: Identity, address: str) -> None:
        self._client = client
        self._identity = identity
        self._address = address
        self._conversation = address if address[0] in "CG" else ""
        """Where to look for what was told; empty: not known yet."""

    async def find(self, key: str, *, since: float) -> bool | None:
        """See Operator."""
        if not self._conversation:
            return None
        try:
            told = await self._as_member(lambda: self._told(key, since))
        except ChatRejected:
            return False  # told twice is better than not at all
        for ts in told[1:]:
            with contextlib.suppress(ChatRejected):  # gone already, or the workspace does not let anything be deleted
                await call(self._client.chat_delete(channel=self._conversation, ts=ts))
        return bool(told)

    async def tell(self, words: str, key: str) -> None:
        """See Operator."""
        answer = await self._as_member(lambda: self._post(words, key))
        self._conversation = self._conversation or text_at(answer, "channel")

    async def _as_member(self, work: Callable[[], Awaitable[T]]) -> T:
        """Joins the channel if that is needed."""
        try:
            return await work()
        except ChatNotInChannel:
            await call(self._client.conversations_join(channel=self._address))
            return await work()

    async def _post(self, words: str, key: str) -> Any:
        return await call(
            self._client.chat_postMessage(
                channel=self._address,
                text=SETUP_FAULT(words=escape(words)),
                metadata=metadata_with(_EVENT_TYPE, key),
                unfurl_links=False,
                unfurl_media=False,
            )
        )

    async def _told(self, key: str, since: float) -> list[str]:
        """Returns the `ts` of each message with this key, oldest first."""
        return sorted(
            [ts async for ts in posted_with(_EVENT_TYPE, key, self._identity, lambda at: self._page(since, at))]
        )

    def _page(self, since: float, cursor: str) -> Awaitable[AsyncSlackResponse]:
        options: dict[str, Any] = {"limit": PAGE_SIZE, "include_all_metadata": True, "oldest": oldest_since(since)}
        if cursor:
            options["cursor"] = cursor
        return self._client.conversations_history(channel=self._conversation, **options)
