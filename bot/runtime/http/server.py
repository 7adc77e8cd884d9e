"""A small HTTP server that idle, slow and broken clients cannot block, and whose log they cannot flood.

aiohttp does not limit the time that a request may take to arrive, the number of connections, or the memory that they
use together. It answers malformed requests with its own version number, and logs a traceback for each. When the process
runs out of sockets, asyncio logs a traceback for each failed accept (up to Python 3.11, over a hundred at a time).
"""

import asyncio
import itertools
import logging
import socket
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from aiohttp import web

from bot.runtime.http.connection import MOST_AT_ONCE, HttpConnection, Server, track_request
from bot.runtime.logging import ThrottledLogger
from bot.runtime.tasks import BackgroundTasks

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
_BACKLOG = 512
_MOST_ACCEPTED = 64
"""Connections accepted in a row before the open ones get their turn."""
_PAUSE = 0.2
"""Seconds until the next attempt to accept a connection when the system is out of sockets."""


def listening_socket(host: str, port: int) -> socket.socket:
    """Listens on an IPv4 or IPv6 address. Raises OSError if it is taken, or not an address of this machine."""
    address = host.strip("[]")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        why = str(error.strerror).partition(" (while ")[0]  # Python adds which address it tried
        raise OSError(error.errno, f"cannot listen on {host}, port {port}: {why}") from None


class HttpServer(Server):
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
        app.middlewares.insert(0, track_request)
        app.on_response_prepare.append(_without_version)
        self.request_seconds = request_seconds
        self.idle_seconds = idle_seconds
        self.log = ThrottledLogger(logger)
        self.buffer = memoryview(bytearray(MOST_AT_ONCE))
        self._most = most_connections
        self._pending = PendingBytes[HttpConnection](most_pending_bytes, senders=most_connections)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=shutdown_timeout, handler_cancellation=handler_cancellation
        )
        self._listener: socket.socket | None = None
        self._accepting, self._connecting = BackgroundTasks(), BackgroundTasks()
        self._connections: set[HttpConnection] = set()
        self._waiting: dict[HttpConnection, None] = {}
        """Connections without a complete request; the one that has waited longest comes first."""

    @property
    def port(self) -> int:
        """The port it listens on; 0 if it does not listen."""
        return int(self._listener.getsockname()[1]) if self._listener is not None else 0

    @property
    def pending_bytes(self) -> int:
        """The bytes of unanswered requests from unknown senders."""
        return self._pending.total

    async def start(self, listener: socket.socket) -> None:
        """Serves requests from a listening socket, which `stop` closes."""
        listener.setblocking(False)
        self._listener = listener
        await self._runner.setup()
        self._accepting.spawn(self._accept(listener), name="http-accept")

    async def stop_listening(self) -> None:
        """Accepts no new connections. Requests in progress continue."""
        await self._accepting.cancel()
        await self._connecting.drain(_PAUSE)
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def stop(self) -> None:
        """Closes everything."""
        await self.stop_listening()
        await self._runner.cleanup()

    # -- called by connections --------------------------------------------------------------------------------------

    def opened(self, connection: HttpConnection) -> None:
        """See Server."""
        self._connections.add(connection)
        self._waiting[connection] = None
        if len(self._connections) > self._most:
            self.log.warning("more than %d connections are open: closing those idle longest", self._most)
            self._close_longest_idle()

    def idle(self, connection: HttpConnection) -> None:
        """See Server."""
        if connection in self._connections:
            self._waiting[connection] = None

    def busy(self, connection: HttpConnection) -> None:
        """See Server."""
        self._waiting.pop(connection, None)

    def count_pending(self, connection: HttpConnection, size: int) -> bool:
        """See Server."""
        evicted = self._pending.add(connection, size)
        if evicted:
            self.log.warning("unauthenticated requests use too much memory: closing the largest and slowest")
        for each in evicted:
            self.closed(each)
            each.abort()
        return connection not in evicted

    def clear_pending(self, connection: HttpConnection) -> None:
        """See Server."""
        self._pending.forget(connection)

    def closed(self, connection: HttpConnection) -> None:
        """See Server."""
        self._connections.discard(connection)
        self._waiting.pop(connection, None)
        self._pending.forget(connection)

    def _close_longest_idle(self) -> None:
        oldest = next(iter(self._waiting), None)
        if oldest is not None:
            self.closed(oldest)
            oldest.abort()

    # -- accepting --------------------------------------------------------------------------------------------------

    async def _accept(self, listener: socket.socket) -> None:
        """Accepts connections, forever. It replaces asyncio's own loop; the module's docstring says why."""
        loop = asyncio.get_running_loop()
        for number in itertools.count(1):
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                self.log.warning("cannot accept more connections: %s", error.strerror)
                self._close_longest_idle()
                await asyncio.sleep(_PAUSE)
                continue
            self._connecting.spawn(self._connect(accepted), name="http-connect")
            if number % _MOST_ACCEPTED == 0:
                await asyncio.sleep(0)

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._connection, accepted)
        except Exception as error:  # noqa: BLE001 - one failed connection must not stop the next
            self.log.warning("a connection failed while it was being opened (%s)", type(error).__name__)
            accepted.close()

    def _connection(self) -> HttpConnection:
        manager = self._runner.server
        if manager is None:
            raise ConnectionAbortedError("the server is stopping")
        return HttpConnection(self, manager)


async def _without_version(_: web.Request, answer: web.StreamResponse) -> None:
    answer.headers["Server"] = "Pagehand"
