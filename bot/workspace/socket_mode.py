"""Socket Mode: tickets, WebSocket connections, envelopes and their acknowledgements."""

import asyncio
import itertools
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import WSCloseCode, WSMsgType, web

from bot.workspace.deliveries import Ack, Envelope, NotDeliveredError
from bot.workspace.faults import Faults
from bot.workspace.models import Json

MAX_CONNECTIONS = 10
CONNECTION_SECONDS = 18_060
DEBUG_CONNECTION_SECONDS = 360
WARNING_SECONDS = 10
HEARTBEAT_SECONDS = 30
DisconnectReason = Literal["warning", "refresh_requested", "link_disabled", "too_many_websockets"]


@dataclass(eq=False)
class _Connection:
    socket: web.WebSocketResponse
    transport: asyncio.Transport | None
    silent: bool = False
    """Open, but nothing gets through any more, either way."""

    async def send(self, frame: Json) -> None:
        """One that has just gone, or is silent, is found out by the missing acknowledgement."""
        if self.silent:
            return
        try:
            await self.socket.send_str(json.dumps(frame))
        except ConnectionError:
            return

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class Tickets:
    """Addresses for one connection each: used once, and only for a while."""

    def __init__(self, now: Callable[[], float], lifetime: float) -> None:
        self._now = now
        self._lifetime = lifetime
        self._expiry: dict[str, float] = {}

    def issue(self) -> str:
        now = self._now()
        self._expiry = {ticket: end for ticket, end in self._expiry.items() if end > now}
        ticket = secrets.token_urlsafe(24)
        self._expiry[ticket] = now + self._lifetime
        return ticket

    def redeem(self, ticket: str) -> bool:
        return self._expiry.pop(ticket, 0) > self._now()


class SocketMode:
    """The app's open connections.

    Args:
        app_id: Told in ``hello``.
        faults: Switches that refuse handshakes.
        changed: Called when a connection comes or goes.
        now: The clock, in seconds.
        ticket_lifetime: Seconds a ticket is good for.
    """

    def __init__(
        self,
        app_id: str,
        faults: Faults,
        changed: Callable[[], None],
        now: Callable[[], float],
        *,
        ticket_lifetime: float = 30.0,
    ) -> None:
        self.tickets = Tickets(now, ticket_lifetime)
        self.handshakes_refused = 0
        self._app_id = app_id
        self._faults = faults
        self._changed = changed
        self._connections: dict[int, _Connection] = {}
        self._pending: dict[str, list[asyncio.Future[Ack]]] = {}
        self._numbers = itertools.count(1)
        self._connected = asyncio.Event()
        self._turn = 0

    @property
    def connections(self) -> int:
        return len(self._connections)

    def open_url(self, origin: str) -> str:
        """A new address, good once. Slack's ``debug_reconnects=true`` in its query shortens the connection's life."""
        base = origin.replace("http", "ws", 1)
        return f"{base}/link/?ticket={self.tickets.issue()}&app_id={self._app_id}"

    async def available(self, within: float) -> None:
        try:
            await asyncio.wait_for(self._connected.wait(), within)
        except TimeoutError:
            return

    # one connection

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The WebSocket endpoint: from the handshake to the connection's end."""
        redeemed = self.tickets.redeem(request.query.get("ticket", ""))
        if self._faults.take_handshake() or not redeemed:
            self.handshakes_refused += 1
            self._changed()
            return web.json_response({"ok": False, "error": "invalid_ticket"}, status=403)
        lifetime = DEBUG_CONNECTION_SECONDS if request.query.get("debug_reconnects") == "true" else CONNECTION_SECONDS
        socket = web.WebSocketResponse(autoping=False, heartbeat=HEARTBEAT_SECONDS, max_msg_size=1 << 20)
        await socket.prepare(request)
        connection = _Connection(socket, request.transport)
        if len(self._connections) >= MAX_CONNECTIONS:
            await connection.send(_disconnect_frame("too_many_websockets"))
            await socket.close()
            return socket
        await self._serve(connection, lifetime)
        return socket

    async def _serve(self, connection: _Connection, lifetime: float) -> None:
        number = next(self._numbers)
        self._connections[number] = connection
        ageing = asyncio.create_task(self._age(connection, lifetime))
        try:
            await connection.send(self._hello(lifetime))
            self._connected.set()
            self._changed()
            await self._receive(connection)
        finally:
            ageing.cancel()
            del self._connections[number]
            if not self._connections:
                self._connected.clear()
            self._changed()

    async def _receive(self, connection: _Connection) -> None:
        async for frame in connection.socket:
            if connection.silent:
                continue
            if frame.type is WSMsgType.PING:
                await connection.socket.pong(frame.data)
            elif frame.type is WSMsgType.TEXT:
                self._acknowledged(frame.data)

    def _acknowledged(self, text: str) -> None:
        """Take an acknowledgement, from whichever connection. Anything else is ignored, as Slack does."""
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(body, dict) or not isinstance(body.get("envelope_id"), str):
            return
        payload = body.get("payload")
        ack = Ack(payload if isinstance(payload, dict) else {})
        for waiting in self._pending.get(body["envelope_id"], ()):
            if not waiting.done():
                waiting.set_result(ack)
                return

    def _hello(self, lifetime: float) -> Json:
        return {
            "type": "hello",
            "num_connections": len(self._connections),
            "connection_info": {"app_id": self._app_id},
            "debug_info": {"host": "local", "build_number": 1, "approximate_connection_time": int(lifetime)},
        }

    async def _age(self, connection: _Connection, lifetime: float) -> None:
        await asyncio.sleep(lifetime - WARNING_SECONDS)
        await connection.send(_disconnect_frame("warning"))
        await asyncio.sleep(WARNING_SECONDS)
        await connection.send(_disconnect_frame("refresh_requested"))
        await connection.socket.close()

    # envelopes

    async def send(self, envelope: Envelope, ack_within: float) -> Ack:
        """Send to one of the connections, in turn, and wait for the acknowledgement."""
        connection = self._next_connection()
        if connection is None:
            raise NotDeliveredError("no_connection")
        waiting: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        self._pending.setdefault(envelope.id, []).append(waiting)
        try:
            await connection.send(_frame(envelope))
            return await asyncio.wait_for(waiting, ack_within)
        except TimeoutError:
            raise NotDeliveredError("timeout") from None
        finally:
            self._forget(envelope.id, waiting)

    def _forget(self, envelope_id: str, waiting: asyncio.Future[Ack]) -> None:
        others = [future for future in self._pending.get(envelope_id, ()) if future is not waiting]
        if others:
            self._pending[envelope_id] = others
        else:
            self._pending.pop(envelope_id, None)

    def _next_connection(self) -> _Connection | None:
        alive = [connection for connection in self._connections.values() if not connection.socket.closed]
        if not alive:
            return None
        self._turn += 1
        return alive[self._turn % len(alive)]

    # the workspace's side of a connection's end

    async def disconnect(self, reason: DisconnectReason, *, only: int | None = None) -> int:
        """Send a disconnect frame and, unless it is a warning, close. Returns how many connections were told.

        Args:
            reason: Slack's reason.
            only: How many connections to tell; all when None.
        """
        told = list(self._connections.values())[:only]
        for connection in told:
            await connection.send(_disconnect_frame(reason))
            if reason != "warning":
                await connection.socket.close(code=WSCloseCode.OK)
        return len(told)

    def cut(self) -> None:
        """Break every connection without a word."""
        for connection in tuple(self._connections.values()):
            connection.abort()

    def fall_silent(self) -> None:
        """Let nothing more through on the present connections, and leave them open: a network that swallows all."""
        for connection in self._connections.values():
            connection.silent = True


def _frame(envelope: Envelope) -> Json:
    frame: dict[str, Any] = {
        "envelope_id": envelope.id,
        "payload": envelope.payload,
        "type": envelope.type,
        "accepts_response_payload": envelope.accepts_response_payload,
    }
    if envelope.type == "events_api":
        frame |= {"retry_attempt": envelope.attempt, "retry_reason": envelope.reason}
    return frame


def _disconnect_frame(reason: DisconnectReason) -> Json:
    return {"type": "disconnect", "reason": reason, "debug_info": {"host": "local"}}
