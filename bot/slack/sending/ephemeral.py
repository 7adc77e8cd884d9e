"""Messages that one person alone sees."""

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatNotInChannel, ChatRejected
from bot.slack.rendering.blocks import Message
from bot.slack.sending.response_urls import ResponseUrls
from bot.slack.sending.web_api import call


class EphemeralSender:
    """Tells one person something: in the thread that it is about, else by a response_url, else as an ephemeral message
    in the channel, else directly.
    """

    def __init__(self, client: AsyncWebClient, response_urls: ResponseUrls) -> None:
        self._client = client
        self._response_urls = response_urls

    def remember(self, person_id: str, channel_id: str, response_url: str) -> None:
        """Keeps the response_url that came with a command or a click."""
        self._response_urls.remember(person_id, channel_id, response_url)

    async def send(self, person_id: str, channel_id: str, message: Message, *, thread_ts: str = "") -> None:
        """Sends it by the first way that works: with `thread_ts` in that thread, which has to have replies for Slack to
        show it there. Raises ChatError.
        """
        if thread_ts and await self._in_thread(person_id, channel_id, thread_ts, message):
            return
        if await self._response_urls.send(person_id, channel_id, message):
            return
        try:
            await self._post(person_id, channel_id, message)
        except (ChatNotInChannel, ChatRejected):
            await self.send_directly(person_id, message)

    async def send_directly(self, person_id: str, message: Message) -> None:
        """Sends it as a direct message. Raises ChatError."""
        blocks = list(message.blocks) or None
        await call(self._client.chat_postMessage(channel=person_id, text=message.text, blocks=blocks))

    async def _in_thread(self, person_id: str, channel_id: str, thread_ts: str, message: Message) -> bool:
        try:
            await self._post(person_id, channel_id, message, thread_ts=thread_ts)
        except (ChatNotInChannel, ChatRejected):
            return False
        return True

    async def _post(self, person_id: str, channel_id: str, message: Message, thread_ts: str | None = None) -> None:
        blocks = list(message.blocks) or None
        await call(
            self._client.chat_postEphemeral(
                channel=channel_id, user=person_id, text=message.text, blocks=blocks, thread_ts=thread_ts
            )
        )
