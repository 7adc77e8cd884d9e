"""One connection of an HTTP server.

By default, aiohttp decompresses bodies before a handler asks for it, and asyncio reads up to 256 KiB at once from each
connection. Here, bodies stay compressed, and little is read at a time.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Protocol

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.runtime.logging import ThrottledLogger

MOST_AT_ONCE = 4_096
"""Bytes read from a connection before it is another one's turn."""


class Server(Protocol):
    """The part of a server that its connections use. Times are in seconds; `buffer` has MOST_AT_ONCE bytes."""

    request_seconds: float
    idle_seconds: float
    log: ThrottledLogger
    buffer: memoryview

    def opened(self, connection: "HttpConnection") -> None:
        """A connection is open and waits for its first request."""

    def idle(self, connection: "HttpConnection") -> None:
        """A connection waits for its next request."""

    def busy(self, connection: "HttpConnection") -> None:
        """A connection has received a complete request."""

    def count_pending(self, connection: "HttpConnection", size: int) -> bool:
        """A connection has received `size` bytes of a request. Returns False if it was closed to free memory."""

    def clear_pending(self, connection: "HttpConnection") -> None:
        """A connection's request is answered, or its sender is known."""

    def closed(self, connection: "HttpConnection") -> None:
        """A connection is closed."""


class HttpConnection(web.RequestHandler, asyncio.BufferedProtocol):
    """aiohttp's connection, with a deadline for each request, a limit on reads, and errors that reveal little."""

    def __init__(self, server: Server, manager: web.Server) -> None:
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
        self._close_after(self._server.idle_seconds)
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
                self._close_after(self._server.request_seconds)
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
            self._server.busy(self)

    def request_answered(self) -> None:
        """The response is sent. Bytes that have arrived since the request count as the start of the next one."""
        self._request = None
        self._is_answering = self._is_authenticated = False
        self._server.clear_pending(self)
        self._server.idle(self)
        self._close_after(self._server.request_seconds if self._has_begun else self._server.idle_seconds)

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

    def _close_after(self, seconds: float) -> None:
        self._stop_waiting()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def mark_authenticated(request: web.BaseRequest) -> None:
    """Marks a request's sender as known: its bytes no longer count towards the limit for unknown senders."""
    if isinstance(request.protocol, HttpConnection):
        request.protocol.authenticated()


@web.middleware
async def track_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Tells the connection when a request starts and when it is answered."""
    connection = request.protocol
    if not isinstance(connection, HttpConnection):
        return await handler(request)
    connection.request_started(request)
    try:
        return await handler(request)
    finally:
        connection.request_answered()
