"""Socket Mode: WebSocket connections, the envelopes they carry, and the acknowledgements."""

import asyncio
import itertools
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import WSCloseCode, WSMsgType, web

from bot.workspace.delivery.transport import NotDeliveredError
from bot.workspace.model.entities import Json
from bot.workspace.wire.envelopes import (
    Ack,
    DisconnectReason,
    Envelope,
    disconnect_frame,
    envelope_frame,
    hello_frame,
    read_ack_frame,
)


class Tickets:
    """Tickets that let the app connect once, within a limited time.

    Args:
        now: The clock, in seconds.
        lifetime: Seconds until a ticket expires.
    """

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
        """Uses a ticket up. Returns whether it was valid."""
        return self._expiry.pop(ticket, 0) > self._now()


MAX_CONNECTIONS = 10
CONNECTION_SECONDS = 18_060
WARNING_SECONDS = 10
HEARTBEAT_SECONDS = 30
MAX_FRAME_BYTES = 1 << 20


@dataclass(eq=False)
class _AppConnection:
    socket: web.WebSocketResponse
    transport: asyncio.Transport | None
    blackholed: bool = False
    """The connection is open, but no frame gets through in either direction."""

    async def send(self, frame: Json) -> None:
        """Sends a frame. If it does not arrive, no acknowledgement will."""
        if self.blackholed:
            return
        try:
            await self.socket.send_str(json.dumps(frame))
        except ConnectionError:
            return

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class SocketMode:
    """The app's open connections.

    Args:
        app_id: Sent in ``hello``.
        refuses_handshake: Returns whether to refuse the next handshake even with a valid ticket.
        on_connection_change: Called when a connection opens or closes, or a handshake is refused.
        origin: Returns the workspace's own address.
        now: The clock, in seconds.
        ticket_lifetime: Seconds until a connection's URL expires.
    """

    def __init__(
        self,
        app_id: str,
        refuses_handshake: Callable[[], bool],
        on_connection_change: Callable[[], None],
        origin: Callable[[], str],
        now: Callable[[], float],
        *,
        ticket_lifetime: float = 30.0,
    ) -> None:
        self.handshakes_refused = 0
        self._tickets = Tickets(now, ticket_lifetime)
        self._app_id = app_id
        self._refuses_handshake = refuses_handshake
        self._on_connection_change = on_connection_change
        self._origin = origin
        self._connections: dict[int, _AppConnection] = {}
        self._pending: dict[str, list[asyncio.Future[Ack]]] = {}
        self._numbers = itertools.count(1)
        self._connected = asyncio.Event()
        self._turn = 0

    @property
    def connections(self) -> int:
        return len(self._connections)

    @property
    def connected(self) -> bool:
        return self.connections > 0

    def open_url(self) -> str:
        """Returns a new URL, valid for one connection."""
        base = self._origin().replace("http", "ws", 1)
        return f"{base}/link/?ticket={self._tickets.issue()}&app_id={self._app_id}"

    async def wait_until_connected(self, timeout: float) -> None:  # noqa: ASYNC109 - as the protocol has it
        try:
            await asyncio.wait_for(self._connected.wait(), timeout)
        except TimeoutError:
            return

    # one connection

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serves one WebSocket connection, from the handshake to its end."""
        redeemed = self._tickets.redeem(request.query.get("ticket", ""))
        if self._refuses_handshake() or not redeemed:
            self.handshakes_refused += 1
            self._on_connection_change()
            return web.json_response({"ok": False, "error": "invalid_ticket"}, status=403)
        socket = web.WebSocketResponse(autoping=False, heartbeat=HEARTBEAT_SECONDS, max_msg_size=MAX_FRAME_BYTES)
        await socket.prepare(request)
        connection = _AppConnection(socket, request.transport)
        if len(self._connections) >= MAX_CONNECTIONS:
            await connection.send(disconnect_frame("too_many_websockets"))
            await socket.close()
            return socket
        await self._serve(connection)
        return socket

    async def _serve(self, connection: _AppConnection) -> None:
        number = next(self._numbers)
        self._connections[number] = connection
        ageing = asyncio.create_task(_age(connection))
        try:
            await connection.send(hello_frame(self._app_id, len(self._connections), CONNECTION_SECONDS))
            self._connected.set()
            self._on_connection_change()
            await self._receive(connection)
        finally:
            ageing.cancel()
            del self._connections[number]
            if not self._connections:
                self._connected.clear()
            self._on_connection_change()

    async def _receive(self, connection: _AppConnection) -> None:
        async for frame in connection.socket:
            if connection.blackholed:
                continue
            if frame.type is WSMsgType.PING:
                await connection.socket.pong(frame.data)
            elif frame.type is WSMsgType.TEXT:
                self._take_ack(frame.data)

    def _take_ack(self, text: str) -> None:
        """Takes an acknowledgement, which may arrive on any connection."""
        found = read_ack_frame(text)
        if found is None:
            return
        envelope_id, ack = found
        for waiting in self._pending.get(envelope_id, ()):
            if not waiting.done():
                waiting.set_result(ack)
                return

    # envelopes

    async def send(self, envelope: Envelope, ack_timeout: float) -> Ack:
        """Sends to the connections in turn and waits for the acknowledgement."""
        connection = self._next_connection()
        if connection is None:
            raise NotDeliveredError("no_connection")
        waiting: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        self._pending.setdefault(envelope.id, []).append(waiting)
        try:
            await connection.send(envelope_frame(envelope))
            return await asyncio.wait_for(waiting, ack_timeout)
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

    def _next_connection(self) -> _AppConnection | None:
        alive = [connection for connection in self._connections.values() if not connection.socket.closed]
        if not alive:
            return None
        self._turn += 1
        return alive[self._turn % len(alive)]

    # ending connections

    async def disconnect(self, reason: DisconnectReason = "refresh_requested", *, only: int | None = None) -> int:
        """Sends a disconnect frame and, unless it is a warning, closes. Returns the number of connections.

        Args:
            reason: Slack's reason.
            only: How many connections to disconnect; None for all.
        """
        chosen = list(self._connections.values())[:only]
        for connection in chosen:
            await connection.send(disconnect_frame(reason))
            if reason != "warning":
                await connection.socket.close(code=WSCloseCode.OK)
        return len(chosen)

    def abort_connections(self) -> None:
        """Breaks every connection without a close frame."""
        for connection in tuple(self._connections.values()):
            connection.abort()

    def blackhole_connections(self) -> None:
        """Drops all further frames on the open connections without closing them, like a broken network."""
        for connection in self._connections.values():
            connection.blackholed = True


async def _age(connection: _AppConnection) -> None:
    """Warns the app and then ends the connection, as Slack does after some hours."""
    await asyncio.sleep(CONNECTION_SECONDS - WARNING_SECONDS)
    await connection.send(disconnect_frame("warning"))
    await asyncio.sleep(WARNING_SECONDS)
    await connection.send(disconnect_frame("refresh_requested"))
    await connection.socket.close()
