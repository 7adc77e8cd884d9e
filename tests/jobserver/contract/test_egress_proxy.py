"""The proxy through which programs reach other hosts, over real sockets, and hostile programs that use it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bot.jobserver.egress.proxy import MOST_CONNECTIONS, ConnectProxy, EgressRefusals
from bot.jobserver.settings.sandbox import allowed_host

NAME = "gateway.example"


@dataclass
class Names:
    """A resolver: each name has these addresses, the first answer first; the last one is repeated."""

    answers: dict[str, list[Sequence[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def resolve(self, name: str, _: int) -> Sequence[str]:
        self.asked.append(name)
        found = self.answers.get(name)
        if not found:
            raise OSError("no such name")
        return found.pop(0) if len(found) > 1 else found[0]


@dataclass
class World:
    port: int
    names: Names
    refusals: EgressRefusals
    proxy: ConnectProxy
    socket: Path

    def listening(self, **changes: object) -> AbstractAsyncContextManager[None]:
        return replace(self.proxy, **changes).listening(self.socket)  # type: ignore[arg-type]  # its own fields

    async def ask(self, *data: bytes) -> bytes:
        """Sends this, and returns the whole answer; a disconnected client gets nothing more."""
        reader, writer = await asyncio.open_unix_connection(self.socket)
        heard = bytearray()
        with contextlib.suppress(OSError), contextlib.closing(writer):
            for part in data:
                writer.write(part)
                await writer.drain()
            async with asyncio.timeout(20):
                while chunk := await reader.read(65_536):
                    heard += chunk
        return bytes(heard)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Opens it with one host that answers in capitals, listed as one whose address may be private."""

    async def loudly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                writer.write(line.upper())
                await writer.drain()
                if line == b"bye\n":
                    break
        writer.close()

    names, refusals = Names({NAME: [["127.0.0.1"]]}), EgressRefusals()
    async with await asyncio.start_server(loudly, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        allowed = (allowed_host(f"private:{NAME}:{port}"), allowed_host("public.example:443"))
        yield World(port, names, refusals, ConnectProxy(allowed, refusals, names.resolve), tmp_path / "proxy")


def connect(target: str, *headers: str) -> bytes:
    return "\r\n".join((f"CONNECT {target} HTTP/1.1", "Host: any", *headers, "", "")).encode()


async def test_a_listed_host_can_be_reached(world: World) -> None:
    """Data after the request's head is passed on, too."""
    async with world.listening():
        answer = await world.ask(connect(f"{NAME.upper()}.:{world.port}") + b"hello\n", b"bye\n")
    assert answer == b"HTTP/1.1 200 \r\n\r\nHELLO\nBYE\n"
    assert world.refusals.in_words == ()


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("other.example:443", "other.example"),
        ("public.example:80", "public.example:80"),
        ("sub.public.example:443", "sub.public.example"),
        ("127.0.0.1:{port}", "an address that is not a host name"),
        ("2130706433:{port}", "an address that is not a host name"),
        ("[::1]:{port}", "an address that is not a host name"),
        ("[::ffff:7f00:1]:{port}", "an address that is not a host name"),
        ("localhost:{port}", "localhost:{port}"),
    ],
)
async def test_an_unlisted_host_is_refused_and_reported(world: World, target: str, told: str) -> None:
    async with world.listening():
        answer = await world.ask(connect(target.format(port=world.port)))
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"PAGEHAND_JOBSERVER_EGRESS" in answer
    assert world.refusals.in_words == (f"It tried to reach {told.format(port=world.port)}: not allowed here.",)
    assert world.names.asked == []


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], ["169.254.169.254"], ["8.8.8.8", "127.0.0.1"], ["::ffff:7f00:1"], ["::1"], []]
)
async def test_a_name_that_resolves_to_a_private_address_is_refused(world: World, addresses: Sequence[str]) -> None:
    world.names.answers["public.example"] = [addresses]
    async with world.listening():
        assert (await world.ask(connect("public.example:443"))).startswith(b"HTTP/1.1 403")
    assert world.refusals.in_words


async def test_a_name_is_resolved_once_and_the_checked_address_is_used(world: World) -> None:
    """Its second answer is too late for the first connection, and is checked for the next one."""
    world.names.answers[NAME] = [["127.0.0.1"], ["169.254.169.254"]]
    async with world.listening():
        assert (await world.ask(connect(f"{NAME}:{world.port}") + b"bye\n")).endswith(b"BYE\n")
        assert world.names.asked == [NAME]
        assert (await world.ask(connect(f"{NAME}:{world.port}"))).startswith(b"HTTP/1.1 403")


async def test_an_unresponsive_host_is_distinguished_from_a_refused_one(world: World) -> None:
    """It does not count as refused."""
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as gone:
        port = gone.sockets[0].getsockname()[1]
    allowed = (allowed_host(f"private:{NAME}:{port}"), allowed_host("unknown.example:443"))
    async with world.listening(allowed=allowed):
        for target in (f"{NAME}:{port}", "unknown.example:443"):
            assert (await world.ask(connect(target))).startswith(b"HTTP/1.1 502")
    assert world.refusals.in_words == ()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET http://gateway.example/ HTTP/1.1\r\nHost: gateway.example\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        connect("{target}", "Content-Length: 5"),
        connect("{target}", "Transfer-Encoding: chunked"),
        connect("{target}", "Content-Length: 1", "Content-Length: 2"),
        b"CONNECT {target} HTTP/1.1\r\n\r\n",
        b"CONNECT {target} HTTP/1.1\nHost : a\n\n",
        b"CONNECT {target}\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x05\x01\x00\r\n\r\n",
        b"CONNECT " + b"a" * 20_000 + b":443 HTTP/1.1\r\nHost: a\r\n\r\n",
        connect("{target}", *(f"X-{number}: {'x' * 200}" for number in range(100))),
    ],
    ids=range(12),
)
async def test_only_plain_connect_requests_are_accepted(world: World, request_: bytes) -> None:
    target = f"{NAME}:{world.port}".encode()
    async with world.listening(head_s=0.5):
        answer = await world.ask(request_.replace(b"{target}", target), b"hello\n")
    assert b"HELLO" not in answer
    assert answer[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 405", b""}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("http://tracker.example/who?key=1", ("It tried to reach tracker.example:80: not allowed here.",)),
        ("http://user:pw@tracker.example:8080/", ("It tried to reach tracker.example:8080: not allowed here.",)),
        ("http://169.254.169.254/latest", ("It tried to reach an address that is not a host name: not allowed here.",)),
        ("http://[x/", ("It tried to reach an address that is not a host name: not allowed here.",)),
        ("http://a.example:99999/", ("It tried to reach an address that is not a host name: not allowed here.",)),
        ("/", ()),
    ],
)
async def test_a_plain_http_host_is_reported_without_its_path(world: World, asked: str, told: tuple[str, ...]) -> None:
    async with world.listening():
        answer = await world.ask(f"GET {asked} HTTP/1.1\r\nHost: any\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 405")
    assert world.refusals.in_words == told
    assert world.names.asked == []


async def test_slow_and_silent_clients_are_disconnected(world: World) -> None:
    async with world.listening(head_s=0.2, idle_s=0.2):
        assert await world.ask(b"CONNECT ") == b""
        assert await world.ask(connect(f"{NAME}:{world.port}")) == b"HTTP/1.1 200 \r\n\r\n"


async def test_connections_are_bounded_and_end_with_the_run(world: World) -> None:
    open_ones: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    async with world.listening():
        for _ in range(MOST_CONNECTIONS):
            reader, writer = await asyncio.open_unix_connection(world.socket)
            writer.write(connect(f"{NAME}:{world.port}"))
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            open_ones.append((reader, writer))
        open_ones[-1][1].write(b"more than fits into what nobody reads\n" * 20_000)
        assert await world.ask() == b""
    async with asyncio.timeout(20):
        for reader, writer in open_ones:
            await reader.read()
            writer.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_the_server_itself_is_unreachable_even_if_listed(world: World, address: str) -> None:
    """By none of this machine's addresses, whatever name resolves to it; other ports are reachable."""
    world.names.answers[NAME] = [[address]]
    async with world.listening(own_port=world.port):
        answer = await world.ask(connect(f"{NAME}:{world.port}") + b"bye\n")
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"Pagehand's own" in answer
    assert world.refusals.in_words
    world.names.answers[NAME] = [["127.0.0.1"]]
    async with world.listening(own_port=world.port + 1):
        assert (await world.ask(connect(f"{NAME}:{world.port}") + b"bye\n")).endswith(b"BYE\n")
