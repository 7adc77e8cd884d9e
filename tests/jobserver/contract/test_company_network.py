"""A company's network: listed hosts behind its proxy (HTTPS_PROXY, NO_PROXY), and its authority (SSL_CERT_FILE)."""

import asyncio
import contextlib
import os
import ssl
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.servers.certificates import make_certificate
from support.servers.connect_proxy import CompanyProxy, company_proxy
from support.servers.loud import loudly
from support.servers.relayed_model import KEY, relay_world, upstream_server

from bot.jobserver.egress.proxy import ConnectProxy, EgressRefusals, egress_for
from bot.jobserver.errors import JobServerError
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import allowed_host

TARGET = "registry.example:443"


@dataclass
class World:
    """`addresses` are what this machine's resolver returns for every name; None: it knows none."""

    company: CompanyProxy
    monkeypatch: pytest.MonkeyPatch
    socket: Path
    refusals: EgressRefusals
    listens: int
    addresses: Sequence[str] | None = None
    looked_up: int = 0

    async def resolve(self, _: str, __: int) -> Sequence[str]:
        self.looked_up += 1
        if self.addresses is None:
            raise OSError("no such name")
        return self.addresses

    async def ask(self, target: str = TARGET, *listed: str, connect_s: float = 10.0) -> bytes:
        """Connects to a target, says hello and goodbye, and returns the whole answer."""
        allowed = tuple(map(allowed_host, listed or [target]))
        proxy = ConnectProxy(allowed, self.refusals, self.resolve, connect_s=connect_s)
        async with proxy.listening(self.socket):
            reader, writer = await asyncio.open_unix_connection(self.socket)
            with contextlib.closing(writer):
                writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: any\r\n\r\n".encode() + b"hello\n")
                writer.write(b"bye\n")
                writer.write_eof()
                async with asyncio.timeout(10):
                    return await reader.read()


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """Opens a registry that answers in capitals, and a company's proxy that leads there."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with await asyncio.start_server(loudly, "127.0.0.1", 0) as registry, company_proxy() as company:
        port = registry.sockets[0].getsockname()[1]
        company.leads_to = {TARGET: port, f"gateway.internal:{port}": port}
        monkeypatch.setenv("HTTPS_PROXY", company.url)
        yield World(company, monkeypatch, tmp_path / "proxy", EgressRefusals(), port)


@pytest.mark.parametrize("addresses", [None, ["93.184.215.14"]])
async def test_a_listed_host_is_reached_by_its_name(world: World, addresses: Sequence[str] | None) -> None:
    """Whether or not this machine can resolve it: in many networks only the proxy can."""
    world.addresses = addresses
    assert await world.ask() == b"HTTP/1.1 200 \r\n\r\nHELLO\nBYE\n"
    assert world.company.asked == [TARGET]
    assert "authorization" not in world.company.heads[0].lower()
    assert world.refusals.in_words == ()


async def test_the_password_is_sent_only_to_the_proxy(world: World) -> None:
    world.monkeypatch.setenv("HTTPS_PROXY", world.company.url.replace("//", "//ada:planted%20secret@"))
    assert b"HELLO" in await world.ask()
    assert "proxy-authorization: Basic YWRhOnBsYW50ZWQgc2VjcmV0\r\n" in world.company.heads[0]


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], ["169.254.169.254"], ["93.184.215.14", "::1"], ["100.100.100.200"]]
)
async def test_a_locally_private_name_is_still_refused(world: World, addresses: Sequence[str]) -> None:
    world.addresses = addresses
    assert (await world.ask()).startswith(b"HTTP/1.1 403")
    assert world.company.heads == []
    assert world.refusals.in_words


@pytest.mark.parametrize(
    "target", ["other.example:443", "93.184.215.14:443", "[2606:4700::1111]:443", "1572395022:443"]
)
async def test_unlisted_hosts_never_reach_the_proxy(world: World, target: str) -> None:
    """Neither does an address, which cannot be listed."""
    assert (await world.ask(target, TARGET)).startswith(b"HTTP/1.1 403")
    assert (world.company.heads, world.looked_up) == ([], 0)


async def test_no_proxy_and_private_hosts_are_reached_directly(world: World) -> None:
    """A private host is in this network; the address that its name resolves to is checked here."""
    world.addresses = ["127.0.0.1"]
    gateway = f"gateway.internal:{world.listens}"
    assert b"HELLO" in await world.ask(gateway, f"private:{gateway}")
    world.addresses = ["169.254.169.254"]
    assert (await world.ask(gateway, f"private:{gateway}")).startswith(b"HTTP/1.1 403")
    world.monkeypatch.setenv("NO_PROXY", "example, other.example")
    world.addresses = ["127.0.0.1"]
    assert (await world.ask()).startswith(b"HTTP/1.1 403"), "directly, a private address is none that it may have"
    assert world.company.heads == []


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=planted\r\n\r\nplanted",
        b"HTTP/1.1 403 planted\r\nContent-Length: 7\r\n\r\nplanted",
        b"HTTP/1.1 302 Found\r\nLocation: http://planted/\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: planted\r\n\r\nplanted",
        b"SSH-2.0-planted\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"planted" * 20_000 + b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000,
        b"HTTP/1.1 200",
        b"",
    ],
    ids=range(9),
)
async def test_other_proxy_answers_are_no_connection_and_not_passed_on(world: World, answer: bytes) -> None:
    world.company.answer = answer
    told = await world.ask()
    assert told.startswith(b"HTTP/1.1 502")
    assert b"planted" not in told
    if answer.startswith(b"HTTP/1.1 4"):
        assert b"This server's own proxy does not connect to it (" + answer[9:12] in told


async def test_a_silent_or_missing_proxy_is_not_waited_for_long(world: World) -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(mute, "127.0.0.1", 0) as server:
        world.monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        assert (await world.ask(connect_s=0.2)).startswith(b"HTTP/1.1 502")
    world.monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert (await world.ask()).startswith(b"HTTP/1.1 502")


async def test_a_name_the_local_resolver_does_not_answer_is_left_to_the_proxy(world: World) -> None:
    """Where only the proxy resolves names of the internet, resolvers often do not answer."""

    async def resolve(_: str, __: int) -> Sequence[str]:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    proxy = ConnectProxy((allowed_host(TARGET),), world.refusals, resolve, look_up_s=0.1)
    async with proxy.listening(world.socket):
        reader, writer = await asyncio.open_unix_connection(world.socket)
        writer.write(f"CONNECT {TARGET} HTTP/1.1\r\nHost: any\r\n\r\nhello\n".encode())
        writer.write_eof()
        assert (await reader.read()).endswith(b"HELLO\n")
        writer.close()


async def test_a_model_the_proxy_does_not_reach_is_reported(world: World) -> None:
    """The message contains neither the proxy's own words nor its password."""
    world.company.answer = b"HTTP/1.1 407 planted\r\nContent-Length: 0\r\n\r\n"
    gone = "http://ada:planted@127.0.0.1:1"
    for proxy, why in ((world.company.url, "does not connect to it (407)"), (gone, "does not respond")):
        world.monkeypatch.setenv("HTTPS_PROXY", proxy)
        async with (
            relay_world(address="https://models.example/v1") as relay,
            relay.post(json={"model": "m", "messages": []}) as answer,
        ):
            told = await answer.text()
        assert f"cannot reach models.example: this server's own proxy {why}" in told
        assert "planted" not in told


def listing(egress: str) -> JobServerSettings:
    return JobServerSettings.model_validate(
        {"repository": "/x", "api_key": "planted-key-of-the-server", "egress": egress}
    )


@pytest.mark.parametrize("address", ["socks5://127.0.0.1:1080", "http://:1", "http://a b:1", "http://a:99999"])
def test_an_unusable_proxy_stops_the_start_and_is_not_quoted(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """If no hosts are listed, or none through the proxy, it does not matter."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", address)
    with pytest.raises(JobServerError, match="must be http://host:port") as stopped:
        egress_for(listing(TARGET))
    assert address not in str(stopped.value)
    for egress in ("none", "open", f"private:{TARGET}"):
        egress_for(listing(egress))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    """Of a server at localhost whose certificate is of the company's authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


ASKED = '{"model": "m", "messages": []}'
TESTS = Path(__file__).parents[2]
PROGRAM = f"""
import asyncio, sys
from pathlib import Path
from support.servers.relayed_model import relay_world
from bot.jobserver.egress.proxy import ConnectProxy, EgressRefusals
from bot.jobserver.settings.sandbox import allowed_host

async def nowhere(name, port):
    raise OSError("no such name")

async def main(model, socket):
    headers = {{"Content-Type": "application/json"}}
    async with relay_world(address=model) as world:
        headers["x-api-key"] = world.run.token
        async with world.post(data={ASKED!r}, headers=headers) as answer:
            print(answer.status, await answer.text())
    proxy = ConnectProxy([allowed_host("registry.example:443")], EgressRefusals(), nowhere)
    async with proxy.listening(Path(socket)):
        reader, writer = await asyncio.open_unix_connection(socket)
        writer.write(b"CONNECT registry.example:443 HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nhello\\n")
        print((await reader.read()).decode().splitlines()[-1])
        writer.close()

asyncio.run(main(*sys.argv[1:]))
"""
"""In its own process: trusted authorities are read once, at its start."""


@pytest.mark.full
async def test_the_relay_and_listed_hosts_use_the_company_ca(
    certificate: Path, tls: ssl.SSLContext, tmp_path: Path
) -> None:
    """Only this authority vouches for the certificates of the model's address and the proxy."""

    async def by_lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    async with (
        upstream_server(tls) as model,
        await asyncio.start_server(by_lines, "127.0.0.1", 0) as registry,
        company_proxy(tls) as proxy,
    ):
        proxy.leads_to = {"registry.example:443": registry.sockets[0].getsockname()[1]}
        kept = {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")}
        told = {"SSL_CERT_FILE": f"{certificate}.crt", "HTTPS_PROXY": proxy.url, "PYTHONPATH": str(TESTS)}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, f"{model.url}/v1", str(tmp_path / "socket"),
            env={**kept, **told}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await process.communicate()
    assert output.decode().splitlines() == ['200 {"ok": true}', "HELLO"]
    assert [request.headers["x-api-key"] for request, _ in model.asked] == [KEY]


async def test_an_untrusted_certificate_is_refused_with_a_reason(tls: ssl.SSLContext) -> None:
    """No part of the request is sent, least of all the key."""
    async with upstream_server(tls) as model, relay_world(address=f"{model.url}/v1") as world:
        headers = {"Content-Type": "application/json", "x-api-key": world.run.token}
        async with world.post(data=ASKED, headers=headers) as answer:
            assert answer.status == 502
            told = (await answer.json())["error"]["message"]
        assert model.asked == []
    why = "its certificate is not trusted here (self-signed certificate)"
    assert told.endswith(f"cannot reach localhost: {why}; SSL_CERT_FILE can name a CA of your own")
