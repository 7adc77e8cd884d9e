"""One connection of an HTTP server.

aiohttp unpacks compressed bodies before anybody asked for that, and asyncio reads up to 256 KiB at once of each of any
number of connections: here, bodies stay as they come, and little is read at a time.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Protocol

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.runtime.logging import ThrottledLogger

MOST_AT_ONCE = 4_096
"""Bytes that are read from a connection before the next one has its turn."""


class Server(Protocol):
    """What connections tell their server. Times in seconds; `buffer` has MOST_AT_ONCE bytes."""

    request_seconds: float
    idle_seconds: float
    log: ThrottledLogger
    buffer: memoryview

    def opened(self, connection: "HttpConnection") -> None:
        """A connection waits for its first request."""

    def waits(self, connection: "HttpConnection") -> None:
        """A connection waits for its next request."""

    def works(self, connection: "HttpConnection") -> None:
        """A connection's request has come in."""

    def takes(self, connection: "HttpConnection", size: int) -> bool:
        """A connection has brought so many bytes of a request. False where it had to make room, and is closed."""

    def settled(self, connection: "HttpConnection") -> None:
        """A connection's request is answered, or somebody vouches for it."""

    def closed(self, connection: "HttpConnection") -> None:
        """A connection is gone."""


class HttpConnection(web.RequestHandler, asyncio.BufferedProtocol):
    """aiohttp's connection, with a deadline for each request, a bound for what is read, and errors that say little."""

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
        self._has_begun = self._is_answering = self._is_vouched_for = False
        self._asked: web.Request | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._close_after(self._server.idle_seconds)
        self._server.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.closed(self)
        self._stop_waiting()
        super().connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - a hint
        """Where the next bytes are put: all connections share it, one after the other."""
        return self._server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._server.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if data:  # otherwise aiohttp only goes on with what it has
            if not self._has_begun and not self._is_answering:
                self._close_after(self._server.request_seconds)
            self._has_begun = True
            if not self._is_vouched_for and not self._server.takes(self, len(data)):
                return
        super().data_received(data)

    def request_has_come(self, request: web.Request) -> None:
        """A request's head is there. The rest of it may still be missing after the answer, and is nothing then."""
        self._asked = request
        request.content.on_eof(lambda: self._request_is_in(request))

    def _request_is_in(self, request: web.Request) -> None:
        """Nothing is missing of the request any more: how long the answer takes is the application's affair."""
        if request is self._asked:
            self._has_begun, self._is_answering = False, True
            self._stop_waiting()
            self._server.works(self)

    def request_is_answered(self) -> None:
        """What has come of the next request meanwhile counts as its beginning."""
        self._asked = None
        self._is_answering = self._is_vouched_for = False
        self._server.settled(self)
        self._server.waits(self)
        self._close_after(self._server.request_seconds if self._has_begun else self._server.idle_seconds)

    def vouched_for(self) -> None:
        """The request comes from somebody who is known."""
        self._is_vouched_for = True
        self._server.settled(self)

    def abort(self) -> None:
        """Closes it without another word: whoever does not send may not read either."""
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
            self._turned_away(exc)
        elif not isinstance(exc, ConnectionError):
            self._server.log.error("a request could not be answered", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionAbortedError("an answer has begun")
        answer = web.Response(status=status, text=HTTPStatus(status).phrase, headers={"Server": "Pagehand"})
        answer.force_close()
        return answer

    def log_exception(self, *_: Any, **details: Any) -> None:
        fault = details.get("exc_info")
        if isinstance(fault, web.RequestPayloadError):  # the rest of the body, read after the answer
            self._turned_away(fault)
        else:
            self._server.log.error("a connection failed", exc_info=fault)

    def _turned_away(self, fault: BaseException | None) -> None:
        self._server.log.warning("a request that cannot be read is turned away (%s)", type(fault).__name__)

    def _close_after(self, seconds: float) -> None:
        self._stop_waiting()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def vouch_for(request: web.BaseRequest) -> None:
    """Says that a request comes from somebody who is known: what it holds does not count as a stranger's any more."""
    if isinstance(request.protocol, HttpConnection):
        request.protocol.vouched_for()


@web.middleware
async def tell_connection(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Has a request's connection know when it has come and is answered."""
    connection = request.protocol
    if not isinstance(connection, HttpConnection):
        return await handler(request)
    connection.request_has_come(request)
    try:
        return await handler(request)
    finally:
        connection.request_is_answered()
