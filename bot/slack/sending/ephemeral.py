"""Messages that one person alone sees."""

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatNotInChannel, ChatRejected
from bot.slack.rendering.blocks import Message
from bot.slack.sending.response_urls import ResponseUrls
from bot.slack.sending.web_api import call


class EphemeralSender:
    """Tells one person something: by a response_url, else as an ephemeral message in the channel, else directly."""

    def __init__(self, client: AsyncWebClient, response_urls: ResponseUrls) -> None:
        self._client = client
        self._response_urls = response_urls

    def remember(self, person_id: str, channel_id: str, response_url: str) -> None:
        """Keeps the response_url that came with a command or a click."""
        self._response_urls.remember(person_id, channel_id, response_url)

    async def send(self, person_id: str, channel_id: str, message: Message) -> None:
        """Sends it by the first way that works. Raises ChatError."""
        if await self._response_urls.send(person_id, channel_id, message):
            return
        blocks = list(message.blocks) or None
        try:
            await call(
                self._client.chat_postEphemeral(channel=channel_id, user=person_id, text=message.text, blocks=blocks)
            )
        except (ChatNotInChannel, ChatRejected):
            await call(self._client.chat_postMessage(channel=person_id, text=message.text, blocks=blocks))
