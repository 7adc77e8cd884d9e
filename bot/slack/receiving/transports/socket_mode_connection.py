"""One Socket Mode connection, from its ticket to its end. It never reconnects: a new one is opened instead.

slack-sdk reconnects to the address that it has, whose ticket is good for one connection only: a handshake that fails
after Slack asked to reconnect would never recover.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatRejected, ChatUnreachable
from bot.slack.sending.library_logging import silent_logger
from bot.slack.sending.web_api import call

logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 5.0
PING_INTERVAL = 5.0
"""Seconds. A connection whose pings are not answered four times in a row counts as lost."""
_LOOK_INTERVAL = 0.5

Envelope = dict[str, Any]


class Connection(SocketModeClient):
    """Hands each envelope to `on_envelope`. `disconnect_reason` is Slack's, once it has asked to leave."""

    def __init__(
        self,
        web_client: AsyncWebClient,
        app_token: str,
        on_envelope: Callable[["Connection", Envelope], None],
        *,
        ping_interval: float = PING_INTERVAL,
    ) -> None:
        super().__init__(
            app_token=app_token,
            logger=silent_logger("bot.slack.socket_mode_client"),
            web_client=web_client,
            auto_reconnect_enabled=False,
            ping_interval=ping_interval,
        )
        self.proxy = web_client.proxy
        self.disconnect_reason = ""
        self._on_envelope = on_envelope
        self._asked_to_leave = asyncio.Event()

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
            logger.warning("a frame from Slack cannot be read and is left alone")
            return
        if not isinstance(message, dict):
            return
        if message.get("type") == "disconnect":
            self.disconnect_reason = str(message.get("reason"))[:50]
            self._asked_to_leave.set()
        elif isinstance(message.get("envelope_id"), str):
            self._on_envelope(self, message)

    async def ended(self) -> None:
        """Returns when Slack asks to leave (seconds before it closes), or the connection is lost."""
        while not self._asked_to_leave.is_set() and await self.is_connected():
            try:
                async with asyncio.timeout(_LOOK_INTERVAL):
                    await self._asked_to_leave.wait()
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
        raise ChatRejected("no_socket_address")
    return url
