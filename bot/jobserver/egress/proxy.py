"""Opens network access for one run: a proxy on a Unix socket, which checks hosts' addresses and counts refusals."""

import asyncio
import contextlib
import functools
import socket
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import h11

from bot.errors import ConfigError
from bot.jobserver.egress.addresses import Resolve, is_public, is_this_machines, may_be_internal
from bot.jobserver.egress.upstream_proxy import Streams, UpstreamProxyError, connect_through, upstream_of
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.forward import copy
from bot.jobserver.sandbox.interface import Door, Program
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import OPEN, AllowedHost, find_allowed, host_and_port, host_name

MOST_NAMES = 20
"""Distinct names kept per run: a program could try any number."""
_SHOWN_NAMES = 5
_SHOWN_CHARACTERS = 80
UNREADABLE = "an address that is not a host name"
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
_LOOKUP_THREADS = ThreadPoolExecutor(8, thread_name_prefix="look-up")
"""Own threads, so that slow lookups block nothing else."""
_ONLY_CONNECT = "This proxy supports only CONNECT requests for listed hosts."
_NOT_LISTED = "This host is not allowed: PAGEHAND_JOBSERVER_EGRESS lists those that are."
_NOT_PUBLIC = "This host's name resolves to an address that is not public."
_NOT_THERE = "This host cannot be reached. This server's own proxy does not connect to it ({})."
PROXY_PORT = 8702
"""Inside the sandbox, whose own loopback interface has nothing else."""
_PROXY = f"http://127.0.0.1:{PROXY_PORT}"
PROXY_VARIABLES = {
    **dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), _PROXY),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}
"""Tell programs about the proxy; a program that ignores them has no network."""
Connected = Callable[[Program], Program]
"""Adds this run's network access to a program."""


class EgressRefusals:
    """Counts what one run of a program was refused."""

    def __init__(self) -> None:
        self._counts = Counter[str]()

    def refused(self, host: str, port: int = 0) -> None:
        """Counts a host and port as the program named them."""
        self.note(_shown(host, port))

    def note(self, name: str) -> None:
        """Counts a refusal under a trusted name."""
        is_counted = name in self._counts or len(self._counts) < MOST_NAMES
        self._counts[name if is_counted else "others"] += 1

    @property
    def total(self) -> int:
        """How many refusals there were."""
        return self._counts.total()

    @property
    def in_words(self) -> tuple[str, ...]:
        """One sentence for people; empty if nothing was refused."""
        shown = list(self._counts)[:_SHOWN_NAMES]
        left = self.total - sum(self._counts[name] for name in shown)
        more = f" and {left} more" if left else ""
        return (f"It tried to reach {', '.join(shown)}{more}: not allowed here.",) if shown else ()

    def after(self, words: str) -> str:
        """Appends the refusals to the reason for a failure, since they may have caused it."""
        return " ".join((f"{words.rstrip('.')}.", *self.in_words)) if self._counts else words

    @property
    def in_log(self) -> Sequence[str]:
        """A line per name, with the number of refusals."""
        return [f"refused: {name} ({times})" for name, times in self._counts.items()]


def _shown(host: str, port: int) -> str:
    try:
        name = host_name(host)
    except ValueError:
        return UNREADABLE
    cut = name if len(name) <= _SHOWN_CHARACTERS else f"…{name[-_SHOWN_CHARACTERS:]}"
    return cut if port in {0, 443} else f"{cut}:{port}"


class _Refusal(Exception):
    """The error response to a request. A `host` that the program may not reach is counted."""

    def __init__(self, status: int, message: str, host: str | None = None, port: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.host = host
        self.port = port


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

        server = await asyncio.start_unix_server(answer, path)
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
                async with asyncio.timeout(self.head_s):
                    target, early = await _target(inner[0])
                outer = await self._connected(target)
                try:
                    inner[1].write(_response(200, ""))
                    outer[1].write(early)
                    await _tunnel(inner, outer, self.idle_s)
                finally:
                    outer[1].close()
        except _Refusal as refusal:
            if refusal.host is not None:
                self.refusals.refused(refusal.host, refusal.port)
            inner[1].write(_response(refusal.status, refusal.message))
        finally:
            inner[1].close()  # what was written is still sent

    async def _connected(self, target: str) -> Streams:
        host, _, port = target.rpartition(":")
        number = int(port[:5]) if port.isascii() and port.isdigit() else 0
        try:
            name, number = host_and_port(target)
            allowed = find_allowed(self.allowed, name, number)
        except ValueError:
            allowed = None
        if allowed is None:
            raise _Refusal(403, _NOT_LISTED, host, number)
        upstream = upstream_of(allowed)
        try:
            async with asyncio.timeout(self.connect_s):
                return await (self._through(upstream, allowed) if upstream else self._directly(allowed))
        except UpstreamProxyError as error:
            raise _Refusal(502, _NOT_THERE.format(error.status or "no HTTP")) from None
        except (OSError, TimeoutError):
            raise _Refusal(502, "This host cannot be reached.") from None

    async def _directly(self, host: AllowedHost) -> Streams:
        """Connects to an address that was checked; resolving the name again could yield another one."""
        fits = may_be_internal if host.may_be_private else is_public
        addresses = await self.resolve(host.name, host.port)
        if not addresses or not all(map(fits, addresses)):
            raise _Refusal(403, _NOT_PUBLIC, host.name, host.port)
        if host.port == self.own_port and any(map(is_this_machines, addresses)):
            raise _Refusal(403, "This is Pagehand's own server.", host.name, host.port)
        for address in addresses[:MOST_ADDRESSES]:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(address, host.port)
        raise OSError("none of its addresses responds")

    async def _through(self, upstream: str, host: AllowedHost) -> Streams:
        """Connects through an upstream proxy, which resolves the name, unless this machine knows it to be private."""
        known: Sequence[str] = ()
        with contextlib.suppress(OSError, TimeoutError):  # often only the proxy can resolve public names
            async with asyncio.timeout(self.look_up_s):
                known = await self.resolve(host.name, host.port)
        if not all(map(is_public, known)):
            raise _Refusal(403, _NOT_PUBLIC, host.name, host.port)
        return await connect_through(upstream, host.name, host.port)


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
        raise _plain_request(event.target.decode("ascii"))
    if any(name in {b"content-length", b"transfer-encoding"} for name, _ in event.headers):
        raise _Refusal(400, _ONLY_CONNECT)
    return event.target.decode("ascii"), parser.trailing_data[0]


def _plain_request(address: str) -> _Refusal:
    """Refuses a request for an unencrypted page, which the proxy would have to fetch; one to itself has no host."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port = "", 0
    return _Refusal(405, _ONLY_CONNECT, host, port)


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

        copying.create_task(copy(inner[0], outer[1], touch))
        copying.create_task(copy(outer[0], inner[1], touch))


@dataclass(frozen=True)
class Egress:
    """How programs reach other hosts: the `allowed` ones through a proxy, and never the job server at `own_port`.

    Where all are (OPEN), they reach whatever this machine can reach. `count` is told how often a run was refused.
    """

    allowed: tuple[AllowedHost, ...] | Literal["open"] = ()
    own_port: int = 0
    count: Callable[[int], None] | None = None

    @contextlib.asynccontextmanager
    async def opened(self, refusals: EgressRefusals) -> AsyncIterator[Connected]:
        """Opens access for one run, and counts refusals.

        Raises:
            EditError: it cannot be opened.
        """
        try:
            if self.allowed == OPEN:
                yield lambda program: program
                return
            proxy = ConnectProxy(self.allowed, refusals, own_port=self.own_port)
            with tempfile.TemporaryDirectory(prefix="pagehand-") as directory:
                door = Door(PROXY_PORT, Path(directory, "proxy"))
                async with contextlib.AsyncExitStack() as stack:
                    try:
                        await stack.enter_async_context(proxy.listening(door.socket))
                    except OSError as error:
                        raise EditError(
                            f"its way to other hosts cannot be opened: {error.strerror or error}"
                        ) from error
                    yield lambda program: _with_proxy(program, door)
        finally:
            if self.count is not None:
                self.count(refusals.total)


def _with_proxy(program: Program, door: Door) -> Program:
    environment = {**program.environment, **PROXY_VARIABLES}
    return replace(program, environment=environment, doors=(*program.doors, door))


def egress_for(settings: JobServerSettings, count: Callable[[int], None] | None = None) -> Egress:
    """Returns the access that the settings allow.

    Raises:
        JobServerError: the proxy of the server's network cannot be used.
    """
    try:
        for host in settings.egress if settings.egress != OPEN else ():
            upstream_of(host)
    except ConfigError as error:
        raise JobServerError(str(error)) from None
    return Egress(settings.egress, settings.port, count)
