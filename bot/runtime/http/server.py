"""A small HTTP server that idle, slow and broken clients can neither silence nor use to fill the disk.

aiohttp bounds neither the time that a request may take to come in nor the number of connections, nor what all of them
hold together; it answers what it cannot read with its own version, and logs a traceback for it. Where no more sockets
can be had, asyncio logs a traceback for every one that it did not get (all the way up to Python 3.11, over a hundred at
a time).
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

from bot.runtime.http.connection import MOST_AT_ONCE, HttpConnection, Server, tell_connection
from bot.runtime.logging import ThrottledLogger
from bot.runtime.tasks import BackgroundTasks

_SHORTEST = 1.0
"""Seconds that each request counts as having lasted at least, so that among new ones the size decides."""

S = TypeVar("S", bound=Hashable)


@dataclass
class _Pending:
    since: float
    size: int = 0


class PendingBytes(Generic[S]):
    """Counts what each sender has sent of a request of which it is not known yet whether it counts for anything.

    Where that is more than `most` bytes, those make room that hold the most for the longest. Whoever holds less than
    a fair share never does: of `senders`, which is how many there are at most, not all can hold more.
    """

    def __init__(self, most: int, *, senders: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._fair_share = most // senders
        self._monotonic = monotonic
        self._pending: dict[S, _Pending] = {}
        self.total = 0

    def add(self, sender: S, size: int) -> Sequence[S]:
        """Counts what a sender has sent. Returns those that have to make room, which are forgotten."""
        pending = self._pending.setdefault(sender, _Pending(self._monotonic()))
        pending.size += size
        self.total += size
        over = []
        while self.total > self._most:
            over.append(self._costliest())
            self.forget(over[-1])
        return over

    def forget(self, sender: S) -> None:
        """Counts nothing of a sender any more: it is gone, was answered, or is known."""
        pending = self._pending.pop(sender, None)
        self.total -= pending.size if pending else 0

    def _costliest(self) -> S:
        now = self._monotonic()

        def cost(sender: S) -> tuple[bool, float]:
            pending = self._pending[sender]
            return pending.size > self._fair_share, pending.size * max(now - pending.since, _SHORTEST)

        return max(self._pending, key=cost)


REQUEST_SECONDS = 10.0
"""From a request's first byte to its last. Slack itself waits 3 seconds for the answer."""
IDLE_SECONDS = 75.0
"""For a connection on which nothing has been asked, lately: more than proxies keep theirs by default (60)."""
MOST_CONNECTIONS = 400
"""Well below the 1,024 files that a process may have open by default, some of which are needed elsewhere."""
MOST_PENDING_BYTES = 16 << 20
"""Of all requests together of which it is not known yet whether they count for anything."""
_BACKLOG = 512
_MOST_ACCEPTED = 64
"""Connections that are accepted before those that are open have their turn."""
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


class HttpServer(Server):
    """Serves an application, which must not have been started. Times in seconds.

    When there are more than `most_connections`, the one that has waited longest for a request makes room: so a client
    that asks at once gets through however many others hang. When they have sent more than `most_pending_bytes` of
    requests that nobody vouches for (`vouch_for`) and that are not answered, those that hold the most for the longest
    make room. Compressed bodies are left as they come. `handler_cancellation`: whether an answer is given up when its
    client is gone.
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
        app.middlewares.insert(0, tell_connection)
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
        """Those that are not being answered; the one that has waited longest comes first."""

    @property
    def port(self) -> int:
        """The port it listens on; 0 while it does not."""
        return int(self._listener.getsockname()[1]) if self._listener is not None else 0

    @property
    def pending_bytes(self) -> int:
        """What is held at the moment of requests that nobody vouches for."""
        return self._pending.total

    async def start(self, listener: socket.socket) -> None:
        """Takes requests from a listening socket, which it closes in the end."""
        listener.setblocking(False)
        self._listener = listener
        await self._runner.setup()
        self._accepting.spawn(self._accept(listener), name="http-accept")

    async def stop_listening(self) -> None:
        """Takes no new connection; what is being answered goes on."""
        await self._accepting.cancel()
        await self._connecting.drain(_PAUSE)
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def stop(self) -> None:
        """Closes everything."""
        await self.stop_listening()
        await self._runner.cleanup()

    # -- what connections tell --------------------------------------------------------------------------------------

    def opened(self, connection: HttpConnection) -> None:
        """See Server."""
        self._connections.add(connection)
        self._waiting[connection] = None
        if len(self._connections) > self._most:
            self.log.warning("over %d connections are open: those that wait longest are closed", self._most)
            self._make_room()

    def waits(self, connection: HttpConnection) -> None:
        """See Server."""
        if connection in self._connections:
            self._waiting[connection] = None

    def works(self, connection: HttpConnection) -> None:
        """See Server."""
        self._waiting.pop(connection, None)

    def takes(self, connection: HttpConnection, size: int) -> bool:
        """See Server."""
        over = self._pending.add(connection, size)
        if over:
            self.log.warning("requests of strangers would take too much memory: the largest and slowest are closed")
        for each in over:
            self.closed(each)
            each.abort()
        return connection not in over

    def settled(self, connection: HttpConnection) -> None:
        """See Server."""
        self._pending.forget(connection)

    def closed(self, connection: HttpConnection) -> None:
        """See Server."""
        self._connections.discard(connection)
        self._waiting.pop(connection, None)
        self._pending.forget(connection)

    def _make_room(self) -> None:
        oldest = next(iter(self._waiting), None)
        if oldest is not None:
            self.closed(oldest)
            oldest.abort()

    # -- accepting --------------------------------------------------------------------------------------------------

    async def _accept(self, listener: socket.socket) -> None:
        """Takes connections, for ever. Not asyncio's own loop: see above."""
        loop = asyncio.get_running_loop()
        for number in itertools.count(1):
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                self.log.warning("no more connections can be taken: %s", error.strerror)
                self._make_room()
                await asyncio.sleep(_PAUSE)
                continue
            self._connecting.spawn(self._connect(accepted), name="http-connect")
            if number % _MOST_ACCEPTED == 0:
                await asyncio.sleep(0)

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._connection, accepted)
        except Exception as error:  # noqa: BLE001 - one failed connection must not stop the next
            self.log.warning("a connection was lost as it was made (%s)", type(error).__name__)
            accepted.close()

    def _connection(self) -> HttpConnection:
        manager = self._runner.server
        if manager is None:
            raise ConnectionAbortedError("the server is stopping")
        return HttpConnection(self, manager)


async def _without_version(_: web.Request, answer: web.StreamResponse) -> None:
    answer.headers["Server"] = "Pagehand"
