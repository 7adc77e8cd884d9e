"""A small HTTP server that idle, slow and broken clients can neither silence nor use to fill the disk.

aiohttp bounds neither the time that a request may take to come in nor the number of connections, answers what it cannot
read with its own version, and logs a traceback for it. Where no more sockets can be had, asyncio logs a traceback for
every one that it did not get (all the way up to Python 3.11, over a hundred at a time).
"""

import asyncio
import logging
import socket
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.runtime.logging import ThrottledLogger
from bot.runtime.tasks import BackgroundTasks

REQUEST_SECONDS = 10.0
"""From a request's first byte to its last. Slack itself waits 3 seconds for the answer."""
IDLE_SECONDS = 75.0
"""For a connection on which nothing has been asked, lately: more than proxies keep theirs by default (60)."""
MOST_CONNECTIONS = 400
"""Well below the 1,024 files that a process may have open by default, some of which are needed elsewhere."""
_BACKLOG = 512
_PAUSE = 0.2
"""Seconds between tries to accept a connection where the system gives no socket."""

logger = logging.getLogger(__name__)


def listening_socket(host: str, port: int) -> socket.socket:
    """Listens at an IPv4 or IPv6 address. Raises OSError where it is taken, or not this machine's."""
    address = host.strip("[]")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        why = str(error.strerror).partition(" (while ")[0]  # Python adds which address it tried
        raise OSError(error.errno, f"cannot listen on {host}, port {port}: {why}") from None


class HttpServer:
    """Serves an application, which must not have been started. Times in seconds.

    When there are more than `most_connections`, the one that has waited longest for a request makes room: so a client
    that asks at once gets through however many others hang.
    """

    def __init__(
        self,
        app: web.Application,
        *,
        request_seconds: float = REQUEST_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        most_connections: int = MOST_CONNECTIONS,
        shutdown_timeout: float = 0.1,
    ) -> None:
        app.middlewares.insert(0, _tell_connection)
        app.on_response_prepare.append(_without_version)
        self.request_seconds = request_seconds
        self.idle_seconds = idle_seconds
        self.log = ThrottledLogger(logger)
        self._most = most_connections
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=shutdown_timeout)
        self._listener: socket.socket | None = None
        self._accepting = BackgroundTasks()
        self._connections: set[_Connection] = set()
        self._waiting: dict[_Connection, None] = {}
        """Those that are not being answered; the one that has waited longest comes first."""

    @property
    def port(self) -> int:
        """The port it listens on; 0 while it does not."""
        return int(self._listener.getsockname()[1]) if self._listener is not None else 0

    async def start(self, listener: socket.socket) -> None:
        """Takes requests from a listening socket, which it closes in the end."""
        listener.setblocking(False)
        self._listener = listener
        await self._runner.setup()
        self._accepting.spawn(self._accept(listener), name="http-accept")

    async def stop_listening(self) -> None:
        """Takes no new connection; what is being answered goes on."""
        await self._accepting.cancel()
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def stop(self) -> None:
        """Closes everything."""
        await self.stop_listening()
        await self._runner.cleanup()

    # -- what connections tell --------------------------------------------------------------------------------------

    def opened(self, connection: "_Connection") -> None:
        """A connection waits for its first request."""
        self._connections.add(connection)
        self._waiting[connection] = None
        if len(self._connections) > self._most:
            self.log.warning("over %d connections are open: those that wait longest are closed", self._most)
            self._make_room()

    def waits(self, connection: "_Connection") -> None:
        """A connection waits for its next request."""
        if connection in self._connections:
            self._waiting[connection] = None

    def works(self, connection: "_Connection") -> None:
        """A connection's request has come in."""
        self._waiting.pop(connection, None)

    def closed(self, connection: "_Connection") -> None:
        """A connection is gone."""
        self._connections.discard(connection)
        self._waiting.pop(connection, None)

    def _make_room(self) -> None:
        oldest = next(iter(self._waiting), None)
        if oldest is not None:
            self.closed(oldest)
            oldest.abort()

    # -- accepting --------------------------------------------------------------------------------------------------

    async def _accept(self, listener: socket.socket) -> None:
        """Takes connections, for ever. Not asyncio's own loop: see above."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                self.log.warning("no more connections can be taken: %s", error.strerror)
                self._make_room()
                await asyncio.sleep(_PAUSE)
                continue
            try:
                await loop.connect_accepted_socket(self._connection, accepted)
            except Exception as error:  # noqa: BLE001 - whatever became of one connection, the next is taken
                self.log.warning("a connection was lost as it was made (%s)", type(error).__name__)
                accepted.close()

    def _connection(self) -> "_Connection":
        manager = self._runner.server
        if manager is None:
            raise ConnectionAbortedError("the server is stopping")
        return _Connection(self, manager)


class _Connection(web.RequestHandler):
    """aiohttp's connection, with a deadline for each request, and errors that say little."""

    def __init__(self, server: HttpServer, manager: web.Server) -> None:
        super().__init__(
            manager,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # as aiohttp's own runner passes it
            keepalive_timeout=server.idle_seconds,
            lingering_time=server.request_seconds / 2,
        )
        self._server = server
        self._deadline: asyncio.TimerHandle | None = None
        self._has_begun = self._is_answering = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._close_after(self._server.idle_seconds)
        self._server.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.closed(self)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._has_begun and not self._is_answering:
            self._close_after(self._server.request_seconds)
        self._has_begun = True
        super().data_received(data)

    def request_is_in(self) -> None:
        """Nothing is missing of the request any more: how long the answer takes is the application's affair."""
        self._has_begun, self._is_answering = False, True
        self._stop_waiting()
        self._server.works(self)

    def request_is_answered(self) -> None:
        """What has come of the next request meanwhile counts as its beginning."""
        self._is_answering = False
        self._server.waits(self)
        self._close_after(self._server.request_seconds if self._has_begun else self._server.idle_seconds)

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


@web.middleware
async def _tell_connection(request: web.Request, handler: Handler) -> web.StreamResponse:
    connection = request.protocol
    if not isinstance(connection, _Connection):
        return await handler(request)
    request.content.on_eof(connection.request_is_in)
    try:
        return await handler(request)
    finally:
        connection.request_is_answered()


async def _without_version(_: web.Request, answer: web.StreamResponse) -> None:
    answer.headers["Server"] = "Pagehand"
