"""The proxy from a sandbox to listed hosts, on a Unix socket; it checks their addresses itself."""

import asyncio
import contextlib
import functools
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import h11

from bot.jobserver.egress.addresses import Resolve, is_public, is_this_machines, may_be_internal
from bot.jobserver.egress.refusals import EgressRefusals
from bot.jobserver.egress.upstream_proxy import Streams, UpstreamProxy, UpstreamProxyError, upstream_of
from bot.jobserver.settings.sandbox import AllowedHost, find_allowed, host_and_port

MOST_CONNECTIONS = 64
"""Simultaneous connections of one run; more are closed."""
MOST_ADDRESSES = 8
_HEAD_BYTES = 8_192
_HEAD_S = 10.0
_CONNECT_S = 10.0
_LOOK_UP_S = 3.0
"""Time limit of a lookup before the request goes to an upstream proxy."""
_IDLE_S = 300.0
"""Time limit without a byte in either direction."""
_CHUNK = 2**16
_LOOKUP_THREADS = ThreadPoolExecutor(8, thread_name_prefix="look-up")
"""Own threads, so that slow lookups block nothing else."""
_HTTP = 80
_ONLY_CONNECT = "This proxy supports only CONNECT requests for listed hosts."
_NOT_LISTED = "This host is not allowed: PAGEHAND_JOBSERVER_EGRESS lists those that are."
_NOT_PUBLIC = "This host's name resolves to an address that is not public."
_OURSELVES = "This is Pagehand's own server."
_NO_ANSWER = "This host cannot be reached."
_NOT_THERE = "This host cannot be reached. This server's own proxy does not connect to it ({})."


class _Refusal(Exception):
    """The error response to a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class _PlainRequest(_Refusal):
    """A request for an unencrypted page, which the proxy would have to fetch."""

    def __init__(self, address: str) -> None:
        super().__init__(405, _ONLY_CONNECT)
        self.address = address


async def resolve(name: str, port: int) -> list[str]:
    """Resolves a name with the system's resolver."""
    look_up = functools.partial(socket.getaddrinfo, name, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_LOOKUP_THREADS, look_up)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


@dataclass(frozen=True)
class ConnectProxy:
    """Connects programs to the allowed hosts, and counts refusals.

    `own_port` is the job server's own port, which is never reachable.
    """

    allowed: Sequence[AllowedHost]
    refusals: EgressRefusals
    resolve: Resolve = resolve
    own_port: int = 0
    connect_s: float = _CONNECT_S
    look_up_s: float = _LOOK_UP_S
    head_s: float = _HEAD_S
    idle_s: float = _IDLE_S

    @contextlib.asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """Listens on a Unix socket; closes all connections at the end."""
        connections: set[asyncio.Task[None]] = set()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(connections) >= MOST_CONNECTIONS:
                writer.close()
                return
            task = asyncio.ensure_future(self._answer((reader, writer)))
            connections.add(task)
            task.add_done_callback(connections.discard)
            await asyncio.wait({task})

        server = await asyncio.start_unix_server(answer, path, limit=_CHUNK)
        try:
            yield
        finally:
            server.close()
            left = tuple(connections)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _answer(self, inner: Streams) -> None:
        try:
            with contextlib.suppress(OSError, TimeoutError):  # either side is gone or silent
                await self._connect_to_target(inner)
        except _Refusal as refusal:
            if isinstance(refusal, _PlainRequest):
                self._count(refusal.address)
            inner[1].write(_response(refusal.status, refusal.message))
        finally:
            inner[1].close()  # what was written is still sent

    def _count(self, address: str) -> None:
        """Counts the host of a plain request; a request to the proxy itself has none."""
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port or _HTTP
        except ValueError:
            self.refusals.refused("")
            return
        if host:
            self.refusals.refused(host, port)

    async def _connect_to_target(self, inner: Streams) -> None:
        async with asyncio.timeout(self.head_s):
            target, early = await _target(inner[0])
        outer = await self._connected(target)
        try:
            inner[1].write(_response(200, ""))
            outer[1].write(early)
            await _tunnel(inner, outer, self.idle_s)
        finally:
            outer[1].close()

    async def _connected(self, target: str) -> Streams:
        host, _, port = target.rpartition(":")
        number = int(port[:5]) if port.isascii() and port.isdigit() else 0
        try:
            name, number = host_and_port(target)
            allowed = find_allowed(self.allowed, name, number)
        except ValueError:
            allowed = None
        if allowed is None:
            self.refusals.refused(host, number)
            raise _Refusal(403, _NOT_LISTED)
        return await self._connect(allowed)

    async def _connect(self, host: AllowedHost) -> Streams:
        upstream = upstream_of(host)
        try:
            async with asyncio.timeout(self.connect_s):
                return await (self._through(upstream, host) if upstream else self._directly(host))
        except UpstreamProxyError as error:
            raise _Refusal(502, _NOT_THERE.format(error.status or "no HTTP")) from None
        except (OSError, TimeoutError):
            raise _Refusal(502, _NO_ANSWER) from None

    async def _directly(self, host: AllowedHost) -> Streams:
        """Connects to an address that was checked; resolving the name again could yield another one."""
        fits = may_be_internal if host.may_be_private else is_public
        addresses = await self.resolve(host.name, host.port)
        if not addresses or not all(map(fits, addresses)):
            raise self._refused(host, _NOT_PUBLIC)
        if host.port == self.own_port and any(map(is_this_machines, addresses)):
            raise self._refused(host, _OURSELVES)
        for address in addresses[:MOST_ADDRESSES]:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(address, host.port, limit=_CHUNK)
        raise OSError("none of its addresses responds")

    async def _through(self, upstream: UpstreamProxy, host: AllowedHost) -> Streams:
        """Connects through an upstream proxy, which resolves the name, unless this machine knows it to be private."""
        known: Sequence[str] = ()
        with contextlib.suppress(OSError, TimeoutError):  # often only the proxy can resolve public names
            async with asyncio.timeout(self.look_up_s):
                known = await self.resolve(host.name, host.port)
        if not all(map(is_public, known)):
            raise self._refused(host, _NOT_PUBLIC)
        return await upstream.connect(host.name, host.port, limit=_CHUNK)

    def _refused(self, host: AllowedHost, words: str) -> _Refusal:
        self.refusals.refused(host.name, host.port)
        return _Refusal(403, words)


async def _target(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """Reads the head of a request; returns the target, and the data after the head.

    Raises:
        _Refusal: it is not a CONNECT request.
        OSError: the program hung up.
    """
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
    try:
        while (event := parser.next_event()) is h11.NEED_DATA:
            data = await reader.read(_HEAD_BYTES)
            if not data:
                raise ConnectionResetError
            parser.receive_data(data)
    except h11.RemoteProtocolError:
        raise _Refusal(400, _ONLY_CONNECT) from None
    if not isinstance(event, h11.Request):
        raise _Refusal(400, _ONLY_CONNECT)
    if event.method != b"CONNECT":
        raise _PlainRequest(event.target.decode("ascii"))
    if any(name in {b"content-length", b"transfer-encoding"} for name, _ in event.headers):
        raise _Refusal(400, _ONLY_CONNECT)
    return event.target.decode("ascii"), parser.trailing_data[0]


def _response(status: int, words: str) -> bytes:
    if not words:
        return f"HTTP/1.1 {status} \r\n\r\n".encode()
    fields = f"content-length: {len(words) + 1}\r\ncontent-type: text/plain\r\nconnection: close"
    return f"HTTP/1.1 {status} \r\n{fields}\r\n\r\n{words}\n".encode("ascii")


async def _tunnel(inner: Streams, outer: Streams, idle_s: float) -> None:
    """Copies in both directions until both have ended, or nothing came for `idle_s` seconds."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(idle_s) as idle, asyncio.TaskGroup() as copying:

        def touch() -> None:
            idle.reschedule(loop.time() + idle_s)

        copying.create_task(_copy(inner[0], outer[1], touch))
        copying.create_task(_copy(outer[0], inner[1], touch))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, touch: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            touch()
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():  # TLS, as used to a proxy, has no half-close
            writer.write_eof()
        return
    writer.close()
