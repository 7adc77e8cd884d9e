"""One Socket Mode connection, from its ticket to its end. It never reconnects: a new one is opened instead.

slack-sdk's own reconnecting uses the address it has for ever, and its ticket is good for one connection only, so a
handshake that fails after Slack asked to reconnect would never recover.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatRefused, ChatUnreachable
from bot.slack.logs import silent_logger
from bot.slack.web_api import call

logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 5.0
PING_SECONDS = 5.0
"""A connection whose pings are not answered four times in a row counts as lost."""
LOOK_SECONDS = 0.5

Envelope = dict[str, Any]


class Connection(SocketModeClient):
    """Hands each envelope to `received`. `farewell` is Slack's reason for asking to leave, once it has."""

    def __init__(
        self, web_client: AsyncWebClient, app_token: str, received: Callable[["Connection", Envelope], None]
    ) -> None:
        super().__init__(
            app_token=app_token,
            logger=silent_logger("bot.slack.socket_mode_client"),
            web_client=web_client,
            auto_reconnect_enabled=False,
            ping_interval=PING_SECONDS,
        )
        self.proxy = web_client.proxy
        self.farewell = ""
        self._received = received
        self._leaving = asyncio.Event()

    async def open(self) -> None:
        """Gets a ticket and connects. Raises ChatError, and then leaves nothing open."""
        try:
            answer = await call(self.web_client.apps_connections_open(app_token=self.app_token))
            self.wss_uri = _address(answer.get("url"))
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await self.connect()  # type: ignore[no-untyped-call]  # slack-sdk leaves it untyped
        except TimeoutError:
            await self.close()
            raise ChatUnreachable("handshake_failed") from None
        except BaseException:
            await self.close()
            raise

    async def process_message(self) -> None:
        """Takes the next frame. Overrides slack-sdk's, which starts a task for each and keeps none."""
        raw = await self.message_queue.get()
        try:
            message = json.loads(raw)
        except (TypeError, ValueError, RecursionError):
            logger.warning("a frame from Slack can't be read and is left alone")
            return
        if not isinstance(message, dict):
            return
        if message.get("type") == "disconnect":
            self.farewell = str(message.get("reason"))[:50]
            self._leaving.set()
        elif isinstance(message.get("envelope_id"), str):
            self._received(self, message)

    async def ended(self) -> None:
        """Returns when Slack asks to leave (seconds before it closes), or the connection is lost."""
        while not self._leaving.is_set() and await self.is_connected():
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._leaving.wait()
            except TimeoutError:
                continue

    async def close(self) -> None:
        """Ends it, with every task that belongs to it."""
        self.closed = True
        tasks = [self.message_processor, self.current_session_monitor, self.message_receiver]
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
        try:
            if self.current_session is not None:
                await self.current_session.close()
        finally:
            await self.aiohttp_client_session.close()


def _address(url: object) -> str:
    if not isinstance(url, str) or not url.startswith(("wss://", "ws://")):
        raise ChatRefused("no_socket_address")
    return url
