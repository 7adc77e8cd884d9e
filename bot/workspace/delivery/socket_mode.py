"""Socket Mode: WebSocket connections, the envelopes they carry, and the acknowledgements."""

import asyncio
import itertools
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import WSMsgType, web

from bot.workspace.delivery.deliveries import Ack, Envelope, NotDeliveredError
from bot.workspace.model.entities import Json

TICKET_SECONDS = 30.0


class Tickets:
    """Tickets that let the app connect once, within a limited time.

    Args:
        now: The clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._expiry: dict[str, float] = {}

    def issue(self) -> str:
        now = self._now()
        self._expiry = {ticket: end for ticket, end in self._expiry.items() if end > now}
        ticket = secrets.token_urlsafe(24)
        self._expiry[ticket] = now + TICKET_SECONDS
        return ticket

    def redeem(self, ticket: str) -> bool:
        """Uses a ticket up. Returns whether it was valid."""
        return self._expiry.pop(ticket, 0) > self._now()


HEARTBEAT_SECONDS = 30
MAX_FRAME_BYTES = 1 << 20


@dataclass(eq=False)
class AppConnection:
    """A connection of the app."""

    socket: web.WebSocketResponse
    transport: asyncio.Transport | None

    async def send(self, frame: Json) -> None:
        """Sends a frame. If it does not arrive, no acknowledgement will."""
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
        on_connection_change: Called when a connection opens or closes.
        origin: Returns the workspace's own address.
        now: The clock, in seconds.
    """

    def __init__(
        self, on_connection_change: Callable[[], None], origin: Callable[[], str], now: Callable[[], float]
    ) -> None:
        self.connections: dict[int, AppConnection] = {}
        self.tickets = Tickets(now)
        self._on_connection_change = on_connection_change
        self._origin = origin
        self._pending: dict[str, list[asyncio.Future[Ack]]] = {}
        self._numbers = itertools.count(1)
        self._connected = asyncio.Event()
        self._turn = 0

    @property
    def connected(self) -> bool:
        return bool(self.connections)

    def open_url(self) -> str:
        """Returns a new URL, valid for one connection."""
        base = self._origin().replace("http", "ws", 1)
        return f"{base}/link/?ticket={self.tickets.issue()}"

    async def wait_until_connected(self, timeout: float) -> None:  # noqa: ASYNC109 - as the protocol has it
        try:
            await asyncio.wait_for(self._connected.wait(), timeout)
        except TimeoutError:
            return

    # one connection

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serves one WebSocket connection, from the handshake to its end."""
        if not self.tickets.redeem(request.query.get("ticket", "")):
            return web.json_response({"ok": False, "error": "invalid_ticket"}, status=403)
        socket = web.WebSocketResponse(autoping=False, heartbeat=HEARTBEAT_SECONDS, max_msg_size=MAX_FRAME_BYTES)
        await socket.prepare(request)
        await self._serve(AppConnection(socket, request.transport))
        return socket

    async def _serve(self, connection: AppConnection) -> None:
        number = next(self._numbers)
        self.connections[number] = connection
        try:
            await connection.send({"type": "hello", "num_connections": len(self.connections)})
            self._connected.set()
            self._on_connection_change()
            await self._receive(connection)
        finally:
            del self.connections[number]
            if not self.connections:
                self._connected.clear()
            self._on_connection_change()

    async def _receive(self, connection: AppConnection) -> None:
        async for frame in connection.socket:
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

    def _next_connection(self) -> AppConnection | None:
        alive = [connection for connection in self.connections.values() if not connection.socket.closed]
        if not alive:
            return None
        self._turn += 1
        return alive[self._turn % len(alive)]

    # ending connections

    def abort_connections(self) -> None:
        """Breaks every connection without a close frame."""
        for connection in tuple(self.connections.values()):
            connection.abort()


def envelope_frame(envelope: Envelope) -> Json:
    frame: Json = {"envelope_id": envelope.id, "payload": envelope.payload, "type": envelope.type}
    if envelope.type == "events_api":
        frame |= {"retry_attempt": envelope.attempt, "retry_reason": envelope.reason}
    return frame


def read_ack_frame(text: str) -> tuple[str, Ack] | None:
    """Returns an acknowledgement and its envelope's id; None for anything else, which Slack ignores."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or not isinstance(body.get("envelope_id"), str):
        return None
    payload = body.get("payload")
    return body["envelope_id"], Ack(payload if isinstance(payload, dict) else {})
