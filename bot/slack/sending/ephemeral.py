"""Sends messages that only one person sees. Slack's response URLs are kept only in memory, because anyone who has one
can post.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatNotInChannel, ChatRejected
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.sending.expiring_cache import RecentDict
from bot.slack.sending.hosts import origin, slack_proxy
from bot.slack.sending.web_api import call

_USES, _SECONDS = 5, 29 * 60.0
"""Slack allows 5 uses in 30 minutes; a minute is left for the call itself."""
_MOST_ADDRESSES = 1_000


_SLACKS_OWN = frozenset({origin("https://hooks.slack.com"), origin("https://hooks.slack-gov.com")})
"""The second is for GovSlack, which runs on slack-gov.com instead of slack.com (api.slack-gov.com, "Get started using
GovSlack"). That page does not name the host, but other projects that check response URLs use this one.
"""


@dataclass
class _Address:
    url: str = field(repr=False)
    expires_at: float
    uses_left: int = _USES


class KnownResponseUrls:
    """Remembers the newest response_url of each person in each channel: Slack's own, and those of `api_url`'s host."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        api_url: str = "https://slack.com/api",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._origins = _SLACKS_OWN | {origin(api_url)} - {""}
        self._monotonic = monotonic
        self._addresses = RecentDict[tuple[str, str], _Address](_MOST_ADDRESSES)

    def remember(self, person_id: str, channel_id: str, url: str) -> None:
        """Remembers a response_url that came with a command or a click."""
        if origin(url) not in self._origins:
            return
        self._addresses[(person_id, channel_id)] = _Address(url, self._monotonic() + _SECONDS)

    async def send(self, person_id: str, channel_id: str, message: ChatMessage) -> bool:
        """Sends a message to one person, and returns whether a response_url worked."""
        address = self._use(person_id, channel_id)
        if address is None:
            return False
        body = {"text": message.text, "response_type": "ephemeral", "replace_original": False}
        try:
            async with self._session.post(
                address.url,
                json=body | ({"blocks": list(message.blocks)} if message.blocks else {}),
                proxy=slack_proxy(address.url),
                allow_redirects=False,  # a redirect would send the message elsewhere
            ) as answer:
                return answer.status == HTTPStatus.OK
        except Exception:  # noqa: BLE001 - on any failure another way is used, and the URL must not appear in a message
            return False

    def _use(self, person_id: str, channel_id: str) -> _Address | None:
        """Returns a response_url, and counts its use; None if there is none that Slack still accepts."""
        address = self._addresses.get((person_id, channel_id))
        if address is None:
            return None
        if address.uses_left == 0 or address.expires_at <= self._monotonic():
            del self._addresses[(person_id, channel_id)]
            return None
        address.uses_left -= 1
        return address


class EphemeralSender:
    """Sends a message to one person: in the thread that it is about, or by a response_url, or as an ephemeral message
    in the channel, or as a direct message.
    """

    def __init__(self, client: AsyncWebClient, response_urls: KnownResponseUrls) -> None:
        self._client = client
        self._response_urls = response_urls

    def remember(self, person_id: str, channel_id: str, response_url: str) -> None:
        """Remembers the response_url that came with a command or a click."""
        self._response_urls.remember(person_id, channel_id, response_url)

    async def send(self, person_id: str, channel_id: str, message: ChatMessage, *, thread_ts: str = "") -> None:
        """Sends it by the first way that works. With `thread_ts`, it is sent in that thread, which Slack shows only if
        the thread has replies. Raises ChatError.
        """
        if thread_ts:
            with contextlib.suppress(ChatNotInChannel, ChatRejected):
                await self._post(person_id, channel_id, message, thread_ts=thread_ts)
                return
        if await self._response_urls.send(person_id, channel_id, message):
            return
        try:
            await self._post(person_id, channel_id, message)
        except (ChatNotInChannel, ChatRejected):
            await self.send_directly(person_id, message)

    async def send_directly(self, person_id: str, message: ChatMessage) -> None:
        """Sends it as a direct message. Raises ChatError."""
        await call(self._client.chat_postMessage(channel=person_id, **message.content))

    async def _post(self, person_id: str, channel_id: str, message: ChatMessage, thread_ts: str | None = None) -> None:
        post = self._client.chat_postEphemeral
        await call(post(channel=channel_id, user=person_id, thread_ts=thread_ts, **message.content))
