"""Keeps connections to Slack open: replaces each one before Slack closes it, or when it is lost."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatError, ChatNotAllowed, ChatRejected, ChatUnreachable
from bot.runtime.backoff import Backoff
from bot.runtime.tasks import BackgroundTasks, Supervisor
from bot.slack.sending.web_api import call, silent_logger

logger = logging.getLogger(__name__)

PING_INTERVAL = 5.0
"""Seconds between pings. After four without an answer, the connection counts as lost."""
_LOOK_INTERVAL = 0.5

Envelope = dict[str, Any]


class SocketModeConnection(SocketModeClient):
    """One connection, from its ticket to its end. It never reconnects: a new one is opened instead. slack-sdk would use
    the address that it has again, whose ticket is good for one connection only: a handshake that fails after Slack
    asked to reconnect would never recover.

    Passes each envelope to `on_envelope`. `disconnect_reason` is set once Slack has announced to disconnect, `greeting`
    once Slack has said hello.
    """

    def __init__(
        self,
        web_client: AsyncWebClient,
        app_token: str,
        on_envelope: Callable[["SocketModeConnection", Envelope], None],
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
        self.greeting: Envelope = {}
        self._on_envelope = on_envelope
        self._asked_to_leave = asyncio.Event()

    async def open(self) -> None:
        """Gets a ticket and connects. Raises ChatError, and then leaves nothing open."""
        try:
            answer = await call(self.web_client.apps_connections_open(app_token=self.app_token))
            self.wss_uri = _address(answer.get("url"))
            async with asyncio.timeout(5.0):
                await self.connect()  # type: ignore[no-untyped-call]  # slack-sdk leaves it untyped
        except TimeoutError:
            await self.close()
            raise ChatUnreachable("handshake_failed") from None
        except BaseException:
            await self.close()
            raise

    async def process_message(self) -> None:
        """Processes the next frame. Overrides slack-sdk's, which starts a task for each and keeps no reference."""
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
        elif message.get("type") == "hello":
            self.greeting = message
        elif isinstance(message.get("envelope_id"), str):
            self._on_envelope(self, message)

    def silent_seconds(self) -> float:
        """Returns for how many seconds no ping was answered; a lost connection is noticed only after some."""
        return 0.0 if self.last_ping_pong_time is None else max(time.time() - self.last_ping_pong_time, 0.0)

    async def ended(self) -> None:
        """Returns when Slack announces to disconnect, some seconds before it does, or when the connection is lost."""
        while not self._asked_to_leave.is_set() and await self.is_connected():
            try:
                async with asyncio.timeout(_LOOK_INTERVAL):
                    await self._asked_to_leave.wait()
            except TimeoutError:
                continue

    async def close(self) -> None:
        """Closes the connection and ends all of its tasks."""
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


RETRIES = Backoff(first=1.0, longest=30.0)
_SHORT_LIFE = 5.0
"""Seconds. After connections that end sooner, the delay before the next one grows."""


@dataclass(frozen=True)
class SocketHealth:
    """How many connections are open and wanted, and for how many seconds there has been none, or always one. Each that
    is open answered `silent_seconds` ago at most.
    """

    connected: int
    wanted: int
    down_seconds: float
    reconnects: int = 0
    """How often a connection was opened in the place of another."""
    up_seconds: float = 0.0
    silent_seconds: float = 0.0


class ConnectionKeeper:
    """Keeps as many connections open as there are slots.

    Args:
        new_connection: Creates a connection that is not open yet.
        until_answered: Waits a limited time until what came through a connection is answered.
        connections: How many slots there are.
        monotonic: Returns the time in seconds.
        supervisor: Runs one task per slot.
    """

    def __init__(
        self,
        new_connection: Callable[[], SocketModeConnection],
        until_answered: Callable[[SocketModeConnection], Awaitable[None]],
        *,
        connections: int,
        monotonic: Callable[[], float],
        supervisor: Supervisor,
    ) -> None:
        self._new_connection = new_connection
        self._until_answered = until_answered
        self._supervisor = supervisor
        self._monotonic = monotonic
        self._slots: list[SocketModeConnection | None] = [None] * connections
        self._keepers: list[asyncio.Task[None]] = []
        self._retiring = BackgroundTasks()
        self._up_since = monotonic()
        self._down_since: float | None = self._up_since
        self._last_failure = ""
        self._opened = 0

    def health(self) -> SocketHealth:
        """Returns the number of open connections, and for how long there has been none."""
        now, reconnects = self._monotonic(), max(self._opened - len(self._slots), 0)
        down = 0.0 if self._down_since is None else now - self._down_since
        up = now - self._up_since if self._down_since is None else 0.0
        silent = max((made.silent_seconds() for made in self._slots if made is not None), default=0.0)
        return SocketHealth(self._open_count(), len(self._slots), down, reconnects, up, silent)

    async def start(self) -> None:
        """Opens the connections. Raises ChatNotAllowed or ChatRejected if Slack does not accept the app's token. If
        Slack cannot be reached, it keeps trying in the background.
        """
        tries = await asyncio.gather(*(self._connect() for _ in self._slots), return_exceptions=True)
        fatal = [error for error in tries if isinstance(error, BaseException) and not _is_temporary(error)]
        if fatal:
            await asyncio.gather(*(made.close() for made in tries if isinstance(made, SocketModeConnection)))
            raise fatal[0]
        for slot, made in enumerate(tries):
            if isinstance(made, SocketModeConnection):
                self._note_open(slot, made)
            else:
                self._note_failure(made)
            name = f"connection {slot + 1} to Slack"
            self._keepers.append(self._supervisor.start(name, partial(self._keep_or_drop, slot)))

    async def stop_replacing(self) -> None:
        """Stops opening connections; those that are open stay open."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def close(self) -> None:
        """Closes every connection. Call `stop_replacing` first."""
        await self._retiring.cancel()
        await asyncio.gather(*(made.close() for made in self._slots if made is not None), return_exceptions=True)

    async def _keep_or_drop(self, slot: int) -> None:
        """Keeps a slot connected. After a fault, the slot starts again with a new connection."""
        try:
            await self._keep(slot)
        except Exception:
            current, self._slots[slot] = self._slots[slot], None
            self._note_down()
            if current is not None:
                self._retire_later(current)
            raise

    async def _keep(self, slot: int) -> None:
        """Waits for the end of each connection and opens the next one before closing it. Never returns."""
        short_lived = 0
        while True:
            since, current = self._monotonic(), self._slots[slot]
            if current is not None:
                await current.ended()
                await self._drop_lost(slot)
            short_lived = short_lived + 1 if self._monotonic() - since < _SHORT_LIFE else 0
            if short_lived > 1:
                reason = current.disconnect_reason if current else "lost"
                self._note_failure(ChatUnreachable(f"closed at once: {reason}"))
                await asyncio.sleep(RETRIES.delay(short_lived - 1))
            made = await self._reconnect(slot)
            leaving = self._slots[slot]
            self._note_open(slot, made)
            if leaving is not None:
                self._retire_later(leaving)

    async def _reconnect(self, slot: int) -> SocketModeConnection:
        """Tries until a connection opens, with growing delays."""
        failures = 0
        while True:
            try:
                return await self._connect()
            except Exception as error:  # noqa: BLE001 - whatever it is, giving up would leave Pagehand deaf
                failures += 1
                await self._drop_lost(slot)
                self._note_failure(error)
                asked = error.retry_after if isinstance(error, ChatUnreachable) else None
            await asyncio.sleep(max(asked or 0.0, RETRIES.delay(failures)))

    async def _connect(self) -> SocketModeConnection:
        made = self._new_connection()
        await made.open()
        return made

    async def _drop_lost(self, slot: int) -> None:
        """Forgets a connection that is lost; one that Slack is about to close serves until then."""
        current = self._slots[slot]
        if current is not None and not await current.is_connected():
            self._slots[slot] = None
            self._note_down()
            await current.close()

    def _retire_later(self, connection: SocketModeConnection) -> None:
        self._retiring.spawn(self._retire(connection), name="retiring a connection to Slack")

    async def _retire(self, connection: SocketModeConnection) -> None:
        """Closes a connection once all of its envelopes are answered, or Slack has closed it."""
        try:
            await self._until_answered(connection)
        finally:
            await connection.close()

    def _note_open(self, slot: int, made: SocketModeConnection) -> None:
        self._slots[slot] = made
        self._opened += 1
        if self._down_since is not None:
            self._up_since = self._monotonic()
        if self._last_failure:
            logger.info("a connection to Slack is open again: %d of %d", self._open_count(), len(self._slots))
        self._last_failure, self._down_since = "", None

    def _note_failure(self, error: object) -> None:
        """Logs the first failure of each kind; the health tells a long outage."""
        reason = str(error) if isinstance(error, ChatError) else type(error).__name__
        self._note_down()
        if reason != self._last_failure:
            self._last_failure = reason
            logger.warning(
                "a connection to Slack cannot be opened; %d of %d are open; trying on: %s",
                self._open_count(),
                len(self._slots),
                reason,
            )

    def _note_down(self) -> None:
        if self._open_count() == 0 and self._down_since is None:
            self._down_since = self._monotonic()

    def _open_count(self) -> int:
        return sum(made is not None and not made.closed for made in self._slots)


def _is_temporary(error: BaseException) -> bool:
    return isinstance(error, ChatError) and not isinstance(error, (ChatNotAllowed, ChatRejected))
