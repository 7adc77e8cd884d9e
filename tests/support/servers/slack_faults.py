"""Faults of a Slack workspace: each matches some calls, envelopes or handshakes, a number of times."""

import asyncio
import math
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.runtime.http.server import listening_socket
from bot.workspace import WorkspaceServer
from bot.workspace.delivery.deliveries import RETRY_DELAYS, Ack, Envelope, NotDeliveredError, Transport
from bot.workspace.model.entities import SlackError
from bot.workspace.web_api.endpoint import CallRecord, read_arguments
from bot.workspace.wire.arguments import Arguments

CallFaultKind = Literal["delay", "drop", "status", "ratelimited", "refused"]
EnvelopeFaultKind = Literal["duplicate", "reorder", "drop_ack", "lose"]


@dataclass(eq=False)
class CallFault:
    """A fault of Web API calls.

    Args:
        kind: What goes wrong.
        method: The method it is for, such as ``chat.postMessage``; None for every one.
        remaining: How many more calls it is for; None for all until it is removed.
        applied: Whether the call is carried out before its answer is late or lost.
        seconds: How late the answer is; for ``ratelimited`` what Retry-After says.
        status: The HTTP status, for ``status``.
        blocks: The kinds of block for which a message is refused.
        error: What a refused one is answered.
        hits: How many calls it has met.
    """

    kind: CallFaultKind
    method: str | None = None
    remaining: int | None = 1
    applied: bool = False
    seconds: float = 0
    status: int = 500
    blocks: frozenset[str] = frozenset()
    error: str = "internal_error"
    hits: int = 0

    def matches(self, method: str, blocks: frozenset[str]) -> bool:
        if self.remaining == 0 or self.method not in {None, method}:
            return False
        return self.kind != "refused" or bool(self.blocks & blocks)


@dataclass(eq=False)
class EnvelopeFault:
    """A fault of deliveries.

    Args:
        kind: What goes wrong.
        type: The envelope's type that it is for (``slash_commands``, ``events_api``, ``interactive``); None for all.
        remaining: How many more envelopes it is for; None for all until it is removed.
        hits: How many envelopes it has met.
    """

    kind: EnvelopeFaultKind
    type: str | None = None
    remaining: int | None = 1
    hits: int = 0

    def matches(self, kind: str, envelope_type: str) -> bool:
        return self.remaining != 0 and self.kind == kind and self.type in {None, envelope_type}


AnyFault = TypeVar("AnyFault", CallFault, EnvelopeFault)


@dataclass
class Faults:
    """The faults in force. The methods that add a fault return it; its ``hits`` count how often it has struck."""

    calls: list[CallFault] = field(default_factory=list)
    envelopes: list[EnvelopeFault] = field(default_factory=list)
    refused_handshakes: int = 0
    keeps_nothing: bool = False
    """Whether what people do while no connection is open, or what Slack gave up to deliver, counts as acknowledged: as
    with Slack over Socket Mode, only the history has it.
    """
    kept_nothing: int = 0
    """How often that was so."""
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    def delay(
        self, seconds: float, *, applied: bool = False, method: str | None = None, count: int | None = 1
    ) -> CallFault:
        """Answers late. The call is carried out after the delay, or before it."""
        return self._add(CallFault("delay", method, count, applied, seconds=seconds))

    def drop(self, *, applied: bool = False, method: str | None = None) -> CallFault:
        """Closes the connection without an answer, before or after carrying the call out."""
        return self._add(CallFault("drop", method, applied=applied))

    def server_error(
        self, *, applied: bool = False, status: int = 500, method: str | None = None, count: int | None = 1
    ) -> CallFault:
        """Answers with a 5xx status, before or after carrying the call out."""
        return self._add(CallFault("status", method, count, applied, status=status))

    def rate_limit(self, retry_after: int = 1, *, method: str | None = None) -> CallFault:
        """Answers 429 with a Retry-After of whole seconds."""
        return self._add(CallFault("ratelimited", method, seconds=retry_after))

    def refuse_blocks(self, *kinds: str, error: str = "invalid_blocks") -> CallFault:
        """Refuses messages with such blocks, as a Slack does that does not know them."""
        return self._add(CallFault("refused", remaining=None, blocks=frozenset(kinds), error=error))

    def envelope(
        self, kind: EnvelopeFaultKind, envelope_type: str | None = None, count: int | None = 1
    ) -> EnvelopeFault:
        """Delivers an envelope twice at once; holds it back until the next one was sent, or for half a second; behaves
        as though its acknowledgement had not come; or loses one sending of it on its way to the app.
        """
        self.envelopes.append(fault := EnvelopeFault(kind, envelope_type, count))
        return fault

    def refuse_handshake(self, count: int = 1) -> None:
        """Refuses the next WebSocket handshakes, as for an expired ticket."""
        self.refused_handshakes += count

    def clear(self) -> None:
        """Removes every fault; calls that are held back continue."""
        self.calls.clear()
        self.envelopes.clear()
        self.refused_handshakes = 0
        self._released.set()
        self._released = asyncio.Event()

    def take_call_fault(self, method: str, blocks: frozenset[str]) -> CallFault | None:
        """Returns the fault that applies to this call, and counts it as a hit."""
        return self._counted(next((f for f in self.calls if f.matches(method, blocks)), None))

    def take_refusal(self) -> bool:
        """Returns whether to refuse this handshake."""
        refused = self.refused_handshakes > 0
        self.refused_handshakes -= refused
        return refused

    def take_envelope_fault(self, kind: EnvelopeFaultKind, envelope_type: str) -> EnvelopeFault | None:
        """Returns the fault that applies to this envelope, and counts it as a hit."""
        return self._counted(next((f for f in self.envelopes if f.matches(kind, envelope_type)), None))

    async def hold(self, seconds: float) -> None:
        """Waits for a delay, or until the faults are removed."""
        try:
            await asyncio.wait_for(self._released.wait(), seconds)
        except TimeoutError:
            return

    def _counted(self, fault: AnyFault | None) -> AnyFault | None:
        if fault is not None:
            fault.hits += 1
            fault.remaining = None if fault.remaining is None else fault.remaining - 1
        return fault

    def _add(self, fault: CallFault) -> CallFault:
        self.calls.append(fault)
        return fault


REORDER_SECONDS = 0.5


class FaultyTransport:
    """Duplicates, reorders or loses envelopes and acknowledgements.

    Args:
        transport: The real way to the app.
        faults: Which envelopes are to suffer what.
    """

    def __init__(self, transport: Transport, faults: Faults) -> None:
        self._transport = transport
        self._faults = faults
        self._held: asyncio.Event | None = None

    @property
    def connected(self) -> bool:
        return self._transport.connected

    async def wait_until_connected(self, timeout: float) -> None:  # noqa: ASYNC109 - as the protocol has it
        await self._transport.wait_until_connected(timeout)

    async def send(self, envelope: Envelope, ack_timeout: float) -> Ack:
        found_later = self._faults.keeps_nothing and _is_in_history(envelope)
        try:
            if not (found_later and not self._transport.connected):
                return await self._send(envelope, ack_timeout)
        except NotDeliveredError:
            listens = self._transport.connected  # a paused process, so that Slack gives up while others listen
            if not found_later or listens or envelope.attempt < len(RETRY_DELAYS):
                raise
        self._faults.kept_nothing += 1
        return Ack()

    async def _send(self, envelope: Envelope, ack_timeout: float) -> Ack:
        await self._reorder(envelope)
        if self._faults.take_envelope_fault("lose", envelope.type):
            return await _no_ack(ack_timeout)
        if self._faults.take_envelope_fault("duplicate", envelope.type):
            return await self._send_twice(envelope, ack_timeout)
        ack = await self._transport.send(envelope, ack_timeout)
        if self._faults.take_envelope_fault("drop_ack", envelope.type):
            return await _no_ack(ack_timeout)
        return ack

    async def _send_twice(self, envelope: Envelope, ack_timeout: float) -> Ack:
        twice = (self._transport.send(envelope, ack_timeout) for _ in range(2))
        results = await asyncio.gather(*twice, return_exceptions=True)
        acks = [result for result in results if isinstance(result, Ack)]
        if not acks:
            raise NotDeliveredError("timeout")
        return acks[0]

    async def _reorder(self, envelope: Envelope) -> None:
        """Holds an envelope back until the next one comes, which lets it go."""
        held, self._held = self._held, None
        if held:
            held.set()
        elif self._faults.take_envelope_fault("reorder", envelope.type):
            self._held = asyncio.Event()
            try:
                await asyncio.wait_for(self._held.wait(), REORDER_SECONDS)
            except TimeoutError:
                self._held = None


def _is_in_history(envelope: Envelope) -> bool:
    """Whether it is about a message or a reaction, or shows there as a message that is gone."""
    return envelope.payload.get("event", {}).get("type") in {"message", "app_mention", "reaction_added"}


async def _no_ack(ack_timeout: float) -> Ack:
    await asyncio.sleep(ack_timeout)
    raise NotDeliveredError("timeout")


class RateLimits:
    """Slack's rate limits: about one post per second and channel with short bursts; other methods by their tier. With
    a `pace`, a minute is shortened by this factor.
    """

    def __init__(self, pace: float = 1.0) -> None:
        self._pace = pace
        self._calls: dict[str, deque[float]] = {}

    def retry_after(self, method: str, channel: str) -> int | None:
        """Returns whole seconds to wait, or None after counting an allowed call."""
        if method in POSTS:
            return self._count(f"{method} {channel}", POST_BURST, float(POST_BURST))
        return self._count(method, PER_MINUTE.get(method, 50), 60.0)

    def _count(self, key: str, allowed: int, seconds: float) -> int | None:
        now = time.time() * self._pace
        times = self._calls.setdefault(key, deque())
        while times and times[0] <= now - seconds:
            times.popleft()
        if len(times) >= allowed:
            return max(1, math.ceil((times[0] + seconds - now) / self._pace))
        times.append(now)
        return None


POSTS = frozenset({"chat.postMessage", "chat.postEphemeral"})
POST_BURST = 3
PER_MINUTE = {
    "apps.connections.open": 60, "apps.manifest.create": 20, "apps.manifest.update": 20, "auth.test": 600,
    "chat.getPermalink": 600, "files.info": 100, "reactions.remove": 20, "usergroups.list": 20,
    "usergroups.users.list": 20, "users.info": 100, "views.open": 100, "views.publish": 100, "views.update": 100,
}  # fmt: skip
"""Calls of a method that Slack allows in a minute, where they are not 50."""

MOST_CONNECTIONS = 10
DisconnectReason = Literal["warning", "refresh_requested", "link_disabled", "too_many_websockets"]


class FaultyWorkspace(WorkspaceServer):
    """A workspace with `faults`, with Slack's rate limits if there are any, and with a network that can break."""

    def __init__(self, *args: Any, rate_limits: RateLimits | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.faults = Faults()
        self.handshakes_refused = 0
        self._rate_limits = rate_limits
        self._held: socket.socket | None = None
        self.middlewares += [self._handshake, self._call]
        self.deliveries.transport = FaultyTransport(self.deliveries.transport, self.faults)

    async def stop(self) -> None:
        self.faults.clear()
        self._release()
        await super().stop()

    # calls

    @web.middleware
    async def _call(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        method = request.match_info.get("method")
        if method is None:
            return await handler(request)
        try:
            _, arguments = await read_arguments(request)
        except (SlackError, web.HTTPException):
            return await handler(request)
        channel = str(arguments.as_dict().get("channel"))
        fault = self.faults.take_call_fault(method, _kinds_of_block(arguments))
        if fault is None and self._rate_limits and (wait := self._rate_limits.retry_after(method, channel)):
            fault = CallFault("ratelimited", seconds=wait)
        if fault is None:
            return await handler(request)
        self.changes.notify()
        error = "ratelimited" if fault.kind == "ratelimited" else fault.error
        record = CallRecord(method, arguments.as_dict(), self.state.now(), error=error)
        if fault.applied:
            return await self._faulty(request, fault, await handler(request))
        self.web_api.calls.append(record)
        self.changes.notify()
        if fault.kind == "delay":
            await self.faults.hold(fault.seconds)
            self.web_api.calls.remove(record)  # the handler records it
            return await handler(request)
        return await self._faulty(request, fault, web.json_response({"ok": False, "error": error}))

    async def _faulty(self, request: web.Request, fault: CallFault, answer: web.StreamResponse) -> web.StreamResponse:
        match fault.kind:
            case "delay":
                await self.faults.hold(fault.seconds)
            case "drop" if request.transport is not None:
                request.transport.abort()
            case "status":
                return web.json_response({"ok": False, "error": "internal_error"}, status=fault.status)
            case "ratelimited":
                answer.set_status(429)
                answer.headers["Retry-After"] = str(int(fault.seconds))
        return answer

    # connections

    @web.middleware
    async def _handshake(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path != "/link/":
            return await handler(request)
        if self.faults.take_refusal():
            self.socket_mode.tickets.redeem(request.query["ticket"])  # so that the handler does not take it
        if len(self.socket_mode.connections) >= MOST_CONNECTIONS:
            refused = web.WebSocketResponse()
            await refused.prepare(request)
            await refused.send_json(_disconnect_frame("too_many_websockets"))
            await refused.close()
            return refused
        answer = await handler(request)
        if answer.status == web.HTTPForbidden.status_code:
            self.handshakes_refused += 1
            self.changes.notify()
        return answer

    async def disconnect(self, reason: DisconnectReason = "refresh_requested", *, only: int | None = None) -> int:
        """Sends a disconnect frame to all or some connections, and closes them unless it is a warning. Returns their
        number.
        """
        chosen = list(self.socket_mode.connections.values())[:only]
        for connection in chosen:
            await connection.send(_disconnect_frame(reason))
            if reason != "warning":
                await connection.socket.close()
        return len(chosen)

    def blackhole_connections(self) -> None:
        """Reads nothing more from the open connections, without closing them, like a broken network."""
        for connection in self.socket_mode.connections.values():
            assert connection.transport is not None
            connection.transport.pause_reading()

    # outages

    async def begin_outage(self) -> None:
        """Stops listening and breaks every connection, like a machine that is down."""
        assert self.runner is not None
        assert self.runner.server is not None
        host, port = _address(self.origin)
        for site in tuple(self.runner.sites):
            await site.stop()
        self._held = _bound(host, port)
        for connection in self.runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()

    async def end_outage(self) -> None:
        """Listens again, at the same address."""
        assert self.runner is not None
        self._release()
        await web.SockSite(self.runner, listening_socket(*_address(self.origin))).start()

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def _kinds_of_block(arguments: Arguments) -> frozenset[str]:
    try:
        blocks = arguments.json_value("blocks", "invalid_blocks_format")
    except SlackError:
        return frozenset()
    given = blocks if isinstance(blocks, list) else ()
    return frozenset(str(block.get("type")) for block in given if isinstance(block, dict))


def _disconnect_frame(reason: DisconnectReason) -> dict[str, Any]:
    return {"type": "disconnect", "reason": reason, "debug_info": {"host": "local"}}


def _address(origin: str) -> tuple[str, int]:
    parts = urlsplit(origin)
    return str(parts.hostname), int(parts.port or 0)


def _bound(host: str, port: int) -> socket.socket:
    """Returns a socket that is bound to an address without listening, so that connections are refused and nobody else
    gets the port.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # although closing connections still use it
    held.bind((host, port))
    return held
