"""The addresses Slack gives for answering one person: kept in memory only, since holding one is enough to post."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

import aiohttp
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.slack.blocks import Message
from bot.slack.logs import quiet_logger
from bot.slack.proxies import proxy_for

_USES, _SECONDS = 5, 29 * 60.0
"""Slack allows 5 uses in 30 minutes; a minute is left for the call itself."""
_MOST = 1_000


@dataclass
class _Address:
    url: str = field(repr=False)
    until: float
    uses: int = _USES


class ResponseUrls:
    """Remembers the newest response_url of each person in each channel."""

    def __init__(self, session: aiohttp.ClientSession, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._monotonic = monotonic
        self._addresses: OrderedDict[tuple[str, str], _Address] = OrderedDict()

    def remember(self, person_id: str, channel_id: str, url: str) -> None:
        """Keeps an address that came with a command or a click."""
        if not url.startswith(("https://", "http://")):
            return
        self._addresses[(person_id, channel_id)] = _Address(url, self._monotonic() + _SECONDS)
        self._addresses.move_to_end((person_id, channel_id))
        while len(self._addresses) > _MOST:
            self._addresses.popitem(last=False)

    async def send(self, person_id: str, channel_id: str, message: Message) -> bool:
        """Tells one person something, if there is an address that works; False where it has to go another way."""
        address = self._take(person_id, channel_id)
        if address is None:
            return False
        client = AsyncWebhookClient(
            address.url, session=self._session, retry_handlers=[], logger=quiet_logger("bot.slack.webhook")
        )
        client.proxy = proxy_for(address.url)
        try:
            answer = await client.send(
                text=message.text,
                blocks=list(message.blocks) or None,
                response_type="ephemeral",
                replace_original=False,
            )
        except Exception:  # noqa: BLE001 - any failure means the same: go another way, and keep the address out of words
            return False
        return answer.status_code == HTTPStatus.OK

    def _take(self, person_id: str, channel_id: str) -> _Address | None:
        address = self._addresses.get((person_id, channel_id))
        if address is None:
            return None
        if address.uses == 0 or address.until <= self._monotonic():
            del self._addresses[(person_id, channel_id)]
            return None
        address.uses -= 1
        return address
