"""A small HTTP server that idle, slow and broken clients cannot block, and whose log they cannot flood.

Most of it is aiohttp's runner. That does not limit the time that a request may take to arrive, the number of
connections, or the memory that they use together. It decompresses bodies before a handler asks for it, reads up to 256
KiB at once from each connection, answers malformed requests with its own version number, and logs a traceback for each.
"""

import asyncio
import logging
import socket
import time
import traceback
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.runtime.logging import ThrottledLogger

logger = logging.getLogger(__name__)

_SHORTEST = 1.0
"""Minimum age in seconds that a request counts with, so that size decides among new ones."""

S = TypeVar("S", bound=Hashable)


@dataclass
class _Pending:
    since: float
    size: int = 0


class PendingBytes(Generic[S]):
    """Counts the bytes that each sender has sent of a request which is not authenticated or answered yet.

    When the total exceeds `most` bytes, the senders with the highest size times age are evicted. A sender below its
    fair share, `most` divided by the maximum number of `senders`, is never evicted, since not all can be above it.
    """

    def __init__(self, most: int, *, senders: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._fair_share = most // senders
        self._monotonic = monotonic
        self._pending: dict[S, _Pending] = {}
        self.total = 0

    def add(self, sender: S, size: int) -> Sequence[S]:
        """Adds bytes of a sender. Returns the evicted senders, which are no longer counted."""
        pending = self._pending.setdefault(sender, _Pending(self._monotonic()))
        pending.size += size
        self.total += size
        evicted = []
        while self.total > self._most:
            evicted.append(self._costliest())
            self.forget(evicted[-1])
        return evicted

    def forget(self, sender: S) -> None:
        """Stops counting a sender: it is gone, answered, or authenticated."""
        pending = self._pending.pop(sender, None)
        self.total -= pending.size if pending else 0

    def _costliest(self) -> S:
        now = self._monotonic()

        def cost(sender: S) -> tuple[bool, float]:
            pending = self._pending[sender]
            return pending.size > self._fair_share, pending.size * max(now - pending.since, _SHORTEST)

        return max(self._pending, key=cost)


REQUEST_SECONDS = 10.0
"""From a request's first byte to its last. Slack itself waits 3 seconds for the response."""
IDLE_SECONDS = 75.0
"""How long an idle connection stays open: longer than proxies keep theirs by default (60 s)."""
MOST_CONNECTIONS = 400
"""Well below the 1,024 files that a process may have open by default, some of which are needed elsewhere."""
MOST_PENDING_BYTES = 16 << 20
"""The limit for all unauthenticated requests together."""
_MOST_AT_ONCE = 4_096
"""Bytes read from a connection before it is another one's turn."""


def listening_socket(host: str, port: int) -> socket.socket:
    """Listens on an IPv4 or IPv6 address. Raises OSError if it is taken, or not an address of this machine."""
    address = host.strip("[]")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        why = str(error.strerror).partition(" (while ")[0]  # Python adds which address it tried
        raise OSError(error.errno, f"cannot listen on {host}, port {port}: {why}") from None


class HttpServer:
    """Serves an application, which must not have been started. Times are in seconds.

    Above `most_connections`, the connection that has been idle longest is closed, so a client that sends a request at
    once gets through even if many others hang. Above `most_pending_bytes` of unanswered requests from unknown senders
    (see `mark_authenticated`), the largest and slowest are closed. Bodies are not decompressed. With
    `handler_cancellation`, a handler is cancelled when its client disconnects.
    """

    def __init__(
        self,
        app: web.Application,
        *,
        request_seconds: float = REQUEST_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        most_connections: int = MOST_CONNECTIONS,
        most_pending_bytes: int = MOST_PENDING_BYTES,
        shutdown_timeout: float = 0.1,
        handler_cancellation: bool = False,
    ) -> None:
        app.middlewares.insert(0, _track_request)
        app.on_response_prepare.append(_without_version)
        self.request_seconds = request_seconds
        self.idle_seconds = idle_seconds
        self.log = ThrottledLogger(logger)
        self.buffer = memoryview(bytearray(_MOST_AT_ONCE))
        self.waiting: dict[HttpConnection, None] = {}
        """Connections without a complete request; the one that has waited longest comes first."""
        self._most = most_connections
        self._pending = PendingBytes[HttpConnection](most_pending_bytes, senders=most_connections)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=shutdown_timeout, handler_cancellation=handler_cancellation
        )
        self._listening: asyncio.Server | None = None
        self._connections: set[HttpConnection] = set()

    @property
    def port(self) -> int:
        """The port it listens on; 0 if it does not listen."""
        return int(self._listening.sockets[0].getsockname()[1]) if self._listening is not None else 0

    async def start(self, listener: socket.socket) -> None:
        """Serves requests from a listening socket, which `stop` closes."""
        await self._runner.setup()
        self._listening = await asyncio.get_running_loop().create_server(self._connection, sock=listener)

    def _connection(self) -> "HttpConnection":
        if (manager := self._runner.server) is None:
            raise ConnectionAbortedError("the server is stopping")
        return HttpConnection(self, manager)

    def stop_listening(self) -> None:
        """Accepts no new connections. Requests in progress continue."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    async def stop(self) -> None:
        """Closes everything."""
        self.stop_listening()
        await self._runner.cleanup()

    def opened(self, connection: "HttpConnection") -> None:
        """A connection is open and waits for its first request."""
        self._connections.add(connection)
        self.waiting[connection] = None
        if len(self._connections) > self._most:
            self.log.warning("more than %d connections are open: closing those idle longest", self._most)
            if oldest := next(iter(self.waiting), None):
                self.closed(oldest)
                oldest.abort()

    def count_pending(self, connection: "HttpConnection", size: int) -> bool:
        """Counts bytes of a request. Returns False if the connection was closed to free memory."""
        evicted = self._pending.add(connection, size)
        if evicted:
            self.log.warning("unauthenticated requests use too much memory: closing the largest and slowest")
        for each in evicted:
            self.closed(each)
            each.abort()
        return connection not in evicted

    def idle(self, connection: "HttpConnection") -> None:
        """A connection waits for its next request."""
        self.clear_pending(connection)
        if connection in self._connections:
            self.waiting[connection] = None

    def clear_pending(self, connection: "HttpConnection") -> None:
        """A connection's request is answered, or its sender is known."""
        self._pending.forget(connection)

    def closed(self, connection: "HttpConnection") -> None:
        """A connection is closed."""
        self._connections.discard(connection)
        self.waiting.pop(connection, None)
        self.clear_pending(connection)


class HttpConnection(web.RequestHandler, asyncio.BufferedProtocol):
    """aiohttp's connection, with a deadline for each request, a limit on reads, and errors that reveal little."""

    def __init__(self, server: HttpServer, manager: web.Server) -> None:
        super().__init__(
            manager,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # as aiohttp's own runner passes it
            keepalive_timeout=server.idle_seconds,
            lingering_time=server.request_seconds / 2,
            auto_decompress=False,
        )
        self._server = server
        self._deadline: asyncio.TimerHandle | None = None
        self._has_begun = self._is_answering = self._is_authenticated = False
        self._request: web.Request | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._server.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.closed(self)
        self._stop_waiting()
        super().connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - a hint
        """Returns the buffer for the next bytes, which all connections share."""
        return self._server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._server.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if data:  # aiohttp passes no data when it resumes parsing
            if not self._has_begun and not self._is_answering:
                self._limit_time()
            self._has_begun = True
            if not self._is_authenticated and not self._server.count_pending(self, len(data)):
                return
        super().data_received(data)

    def request_started(self, request: web.Request) -> None:
        """A request's head has arrived. If its body ends only after the response, that end is ignored."""
        self._request = request
        request.content.on_eof(lambda: self._request_complete(request))

    def _request_complete(self, request: web.Request) -> None:
        """The whole request has arrived. The server does not limit how long the application takes to respond."""
        if request is self._request:
            self._has_begun, self._is_answering = False, True
            self._stop_waiting()
            self._server.waiting.pop(self, None)

    def request_answered(self) -> None:
        """The response is sent. Bytes that have arrived since the request count as the start of the next one."""
        self._request = None
        self._is_answering = self._is_authenticated = False
        self._stop_waiting()
        self._server.idle(self)
        if self._has_begun:
            self._limit_time()

    def authenticated(self) -> None:
        """The request's sender is known."""
        self._is_authenticated = True
        self._server.clear_pending(self)

    def abort(self) -> None:
        """Closes the connection without a response, because a client that does not send may not read either."""
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - quotes what was sent
    ) -> web.StreamResponse:
        if status < HTTPStatus.INTERNAL_SERVER_ERROR:
            self._log_unreadable(exc)
        elif not isinstance(exc, ConnectionError):
            self._server.log.error("a request could not be answered", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionAbortedError("the response has started")
        answer = web.Response(status=status, text=HTTPStatus(status).phrase, headers={"Server": "Pagehand"})
        answer.force_close()
        return answer

    def log_exception(self, *_: Any, **details: Any) -> None:
        fault = details.get("exc_info")
        if isinstance(fault, web.RequestPayloadError):  # in the rest of the body, read after the response
            self._log_unreadable(fault)
        else:
            self._server.log.error("a connection failed", exc_info=fault)

    def _log_unreadable(self, fault: BaseException | None) -> None:
        self._server.log.warning("rejected a malformed request (%s)", type(fault).__name__)

    def _limit_time(self) -> None:
        self._deadline = asyncio.get_running_loop().call_later(self._server.request_seconds, self.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def mark_authenticated(request: web.BaseRequest) -> None:
    """Marks a request's sender as known: its bytes no longer count towards the limit for unknown senders."""
    if isinstance(request.protocol, HttpConnection):
        request.protocol.authenticated()


@web.middleware
async def _track_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Tells the connection when a request starts and when it is answered."""
    connection = request.protocol
    if not isinstance(connection, HttpConnection):
        return await handler(request)
    connection.request_started(request)
    try:
        return await handler(request)
    except ConnectionError as error:
        traceback.clear_frames(error.__traceback__)  # they hold the body, in a cycle that waits for the collector
        raise
    finally:
        connection.request_answered()


async def _without_version(_: web.Request, answer: web.StreamResponse) -> None:
    answer.headers["Server"] = "Pagehand"
