"""What Pagehand says in Slack: bot.ports.Chat over Slack's Web API."""

from collections.abc import Awaitable, Collection, Mapping
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.domain.models import Mark, Notice, Thread
from bot.errors import ChatNotInChannel, ChatRefused, ChatUncertain
from bot.ports import Chat
from bot.slack.blocks import Message
from bot.slack.cards import card
from bot.slack.notices import messages
from bot.slack.web_api import Identity, call
from bot.slack.whispers import Whispers
from bot.slack.wording import Wording

EVENT_TYPE = "pagehand_notice"
_CLOCK_DIFFERENCE = 2 * 3_600.0
"""Seconds by which our clock and Slack's may differ when a card is looked for."""
_PAGE, _PAGES = 200, 25


class SlackChat(Chat):
    """One for a process. `identity` is who we are there: only our own messages are taken for ours."""

    def __init__(self, client: AsyncWebClient, identity: Identity, wording: Wording, whispers: Whispers) -> None:
        self._client = client
        self._identity = identity
        self._wording = wording
        self._whispers = whispers

    async def post_card(self, thread: Thread, key: str, *, plain: bool = False) -> str:
        """See Chat."""
        message = card(thread, self._wording)
        return await self._post(thread, message.in_words() if plain else message, key, thread_ts=None)

    async def update_card(self, thread: Thread, *, plain: bool = False) -> None:
        """See Chat. Without blocks, those of an earlier version go away."""
        if thread.ts is None:
            raise ChatRefused("card_not_posted")
        message = card(thread, self._wording)
        blocks = None if plain else list(message.blocks)
        await call(self._client.chat_update(channel=thread.channel_id, ts=thread.ts, text=message.text, blocks=blocks))

    async def post(self, thread: Thread, notice: Notice) -> str:
        """See Chat."""
        return await self._post(thread, messages(thread, notice, self._wording)[0], notice.key, thread_ts=thread.ts)

    async def find(self, thread: Thread, key: str) -> str | None:
        """See Chat. Looks through at most 5,000 messages."""
        cursor = ""
        for _ in range(_PAGES):
            answer = await call(self._page(thread, cursor))
            found = self._carrying(key, answer.get("messages"))
            cursor = _next_cursor(answer)
            if found is not None or not cursor:
                return found
        return None

    async def mark(self, thread: Thread, message_ts: str, mark: Mark, *, instead_of: Collection[Mark]) -> None:
        """See Chat. A message that was deleted needs no mark."""
        at = {"channel": thread.channel_id, "timestamp": message_ts}
        try:
            await _settled(self._client.reactions_add(**at, name=mark.value), "already_reacted")
            for other in instead_of:
                await _settled(self._client.reactions_remove(**at, name=other.value), "no_reaction")
        except ChatRefused as refused:
            if refused.reason != "message_not_found":
                raise

    async def tell(self, thread: Thread, notice: Notice) -> None:
        """See Chat."""
        person_id = notice.facts.get("person", "")
        if not person_id:
            raise ChatRefused("nobody_to_tell")
        for message in messages(thread, notice, self._wording):
            await self._whispers.send(person_id, thread.channel_id, message)

    async def join(self, channel_id: str) -> None:
        """See Chat. Slack answers for a private channel as if it did not exist."""
        try:
            await call(self._client.conversations_join(channel=channel_id))
        except ChatRefused as refused:
            if refused.reason in _PRIVATE:
                raise ChatNotInChannel(refused.reason) from None
            raise

    async def _post(self, thread: Thread, message: Message, key: str, *, thread_ts: str | None) -> str:
        answer = await call(
            self._client.chat_postMessage(
                channel=thread.channel_id,
                thread_ts=thread_ts,
                text=message.text,
                blocks=list(message.blocks) or None,
                metadata={"event_type": EVENT_TYPE, "event_payload": {"key": key}},
                unfurl_links=False,
                unfurl_media=False,
            )
        )
        ts = answer.get("ts")
        if not isinstance(ts, str) or not ts:
            raise ChatUncertain("answer_without_ts")
        return ts

    def _page(self, thread: Thread, cursor: str) -> Awaitable[AsyncSlackResponse]:
        """The replies of a thread, or, before it has a card, the channel's newest messages since it was recorded."""
        options: dict[str, Any] = {"limit": _PAGE, "include_all_metadata": True}
        if cursor:
            options["cursor"] = cursor
        if thread.ts is not None:
            return self._client.conversations_replies(channel=thread.channel_id, ts=thread.ts, **options)
        oldest = f"{max(thread.created_at - _CLOCK_DIFFERENCE, 0.0):.6f}"
        return self._client.conversations_history(channel=thread.channel_id, oldest=oldest, **options)

    def _carrying(self, key: str, found: object) -> str | None:
        for message in found if isinstance(found, list) else []:
            if isinstance(message, dict) and self._is_ours(message) and _key(message) == key:
                ts = message.get("ts")
                return ts if isinstance(ts, str) else None
        return None

    def _is_ours(self, message: Mapping[str, Any]) -> bool:
        ours = self._identity
        return (bool(ours.bot_id) and message.get("bot_id") == ours.bot_id) or (
            bool(ours.bot_user_id) and message.get("user") == ours.bot_user_id
        )


_PRIVATE = frozenset({"channel_not_found", "method_not_supported_for_channel_type", "not_in_channel"})


async def _settled(request: Awaitable[AsyncSlackResponse], done: str) -> None:
    """Awaits a call; the error `done` says that there was nothing left to do."""
    try:
        await call(request)
    except ChatRefused as refused:
        if refused.reason != done:
            raise


def _key(message: Mapping[str, Any]) -> object:
    metadata = message.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("event_type") != EVENT_TYPE:
        return None
    payload = metadata.get("event_payload")
    return payload.get("key") if isinstance(payload, dict) else None


def _next_cursor(answer: Mapping[str, Any]) -> str:
    more = answer.get("response_metadata")
    cursor = more.get("next_cursor") if isinstance(more, dict) else None
    return cursor if isinstance(cursor, str) else ""
