"""Words for one person only."""

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatNotInChannel, ChatRefused
from bot.slack.blocks import Message
from bot.slack.response_urls import ResponseUrls
from bot.slack.web_api import call


class Whispers:
    """Tells one person something: by the address Slack gave for answers, else in the channel, else directly."""

    def __init__(self, client: AsyncWebClient, response_urls: ResponseUrls) -> None:
        self._client = client
        self._response_urls = response_urls

    def remember(self, person_id: str, channel_id: str, response_url: str) -> None:
        """Keeps an address that came with a command or a click."""
        self._response_urls.remember(person_id, channel_id, response_url)

    async def send(self, person_id: str, channel_id: str, message: Message) -> None:
        """Says it. Raises ChatError."""
        if await self._response_urls.send(person_id, channel_id, message):
            return
        blocks = list(message.blocks) or None
        try:
            await call(
                self._client.chat_postEphemeral(channel=channel_id, user=person_id, text=message.text, blocks=blocks)
            )
        except (ChatNotInChannel, ChatRefused):
            await call(self._client.chat_postMessage(channel=person_id, text=message.text, blocks=blocks))
