"""Tells the operator in Slack that something in Pagehand's set-up broke."""

from collections.abc import Mapping
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatNotInChannel
from bot.runtime.json_fields import objects_at, text_at
from bot.slack.rendering.text import escape
from bot.slack.rendering.words.at_once import SETUP_FAULT
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import call

_EVENT_TYPE = "pagehand_fault"
_CLOCK_DIFFERENCE = 2 * 3_600.0
"""Seconds by which our clock may differ from Slack's."""
_LOOKED_THROUGH = 200


class SlackOperator:
    """bot.ports.slack.Operator. `address` is the id of a person or of a channel."""

    def __init__(self, client: AsyncWebClient, identity: Identity, address: str) -> None:
        self._client = client
        self._identity = identity
        self._address = address

    async def tell(self, words: str, key: str, *, since: float) -> None:
        """See Operator. None of the app's scopes allows looking up whether a direct message arrived."""
        if self._address[0] not in "CG":
            await self._post(words, key)
            return
        try:
            if not await self._was_told(key, since):
                await self._post(words, key)
        except ChatNotInChannel:
            await call(self._client.conversations_join(channel=self._address))
            await self._post(words, key)

    async def _post(self, words: str, key: str) -> None:
        await call(
            self._client.chat_postMessage(
                channel=self._address,
                text=SETUP_FAULT(words=escape(words)),
                metadata={"event_type": _EVENT_TYPE, "event_payload": {"key": key}},
                unfurl_links=False,
                unfurl_media=False,
            )
        )

    async def _was_told(self, key: str, since: float) -> bool:
        answer = await call(
            self._client.conversations_history(
                channel=self._address,
                oldest=f"{max(since - _CLOCK_DIFFERENCE, 0.0):.6f}",
                limit=_LOOKED_THROUGH,
                include_all_metadata=True,
            )
        )
        return any(self._is_ours(message) and _key_of(message) == key for message in objects_at(answer, "messages"))

    def _is_ours(self, message: Mapping[str, Any]) -> bool:
        return bool(self._identity.bot_id) and message.get("bot_id") == self._identity.bot_id


def _key_of(message: Mapping[str, Any]) -> str:
    is_fault = text_at(message, "metadata", "event_type") == _EVENT_TYPE
    return text_at(message, "metadata", "event_payload", "key") if is_fault else ""
