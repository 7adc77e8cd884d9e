"""Sends messages that only one person sees."""

import contextlib
from dataclasses import dataclass

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatNotInChannel, ChatRejected
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.sending.web_api import call


@dataclass(frozen=True)
class EphemeralSender:
    """Sends a message to one person: in the thread that it is about, or as an ephemeral message in the channel, or as a
    direct message.
    """

    client: AsyncWebClient

    async def send(self, person_id: str, channel_id: str, message: ChatMessage, *, thread_ts: str = "") -> None:
        """Sends it by the first way that works. With `thread_ts`, it is sent in that thread, which Slack shows only if
        the thread has replies. Raises ChatError.
        """
        for place in [thread_ts, None] if thread_ts else [None]:
            with contextlib.suppress(ChatNotInChannel, ChatRejected):
                post = self.client.chat_postEphemeral
                await call(post(channel=channel_id, user=person_id, thread_ts=place, **message.content))
                return
        await self.send_directly(person_id, message)

    async def send_directly(self, person_id: str, message: ChatMessage) -> None:
        """Sends it as a direct message. Raises ChatError."""
        await call(self.client.chat_postMessage(channel=person_id, **message.content))
