"""Hostile programs in a running job server that try to leave the sandbox: they reach only listed hosts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.servers.free_ports import free_port
from support.worlds.hostile_world import findings_of, hostile_world, needs_bubblewrap

pytestmark = [
    pytest.mark.skipif("sys.platform != 'linux'", reason="bubblewrap exists for Linux only"),
    pytest.mark.promise("sandbox"),
]
ASK = r"""
    import socket
    def through(target, words=b""):
        with socket.create_connection(("127.0.0.1", 8702), 20) as proxy:
            proxy.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            answer = proxy.makefile("rb")
            status = int(answer.readline().split()[1])
            if status != 200:
                return status
            answer.readline()
            proxy.sendall(words)
            proxy.shutdown(socket.SHUT_WR)
            return answer.read()
"""


@pytest.fixture(autouse=True, scope="module")
def bubblewrap() -> None:
    needs_bubblewrap()


@pytest.fixture
async def inside() -> AsyncIterator[int]:
    """Yields the port of a service on this machine, which answers in capitals."""

    async def loudly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write((await reader.read()).upper())
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(loudly, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_an_agent_reaches_only_listed_hosts(
    tmp_path: Path, inside: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the server itself, listed or not, nor an address in any spelling, nor a private
    address of a public name.
    """
    own, listed, public = free_port(), f"localhost:{inside}", "localhost:1"
    targets = (
        f"localhost:{own}", f"127.0.0.1:{inside}", f"2130706433:{inside}", f"0x7f.1:{inside}", f"0177.0.0.1:{inside}",
        f"[::1]:{inside}", f"[::ffff:127.0.0.1]:{inside}", "169.254.169.254:80", "metadata.google.internal:80",
        "localhost:1",
    )  # fmt: skip
    program = f"""{ASK}
    attempt("listed", lambda: through("LocalHost.:{inside}", b"hello" * 100_000) == b"HELLO" * 100_000)
    attempt("directly", lambda: socket.create_connection(("127.0.0.1", {inside}), 5))
    attempt("the server", lambda: socket.create_connection(("127.0.0.1", {own}), 5))
    for target in {targets!r}:
        attempt(target, lambda: through(target))
    report()
    """
    egress = f"private:{listed}, private:localhost:{own}, {public}"
    async with hostile_world(tmp_path, program, egress=egress, port=own) as world:
        job = await world.done("go")
        found = findings_of(world, job)
        log = world.log(job["id"])
    assert found.pop("listed") == "True"
    assert (found.pop("directly"), found.pop("the server")) == ("ConnectionRefusedError", "ConnectionRefusedError")
    assert found == dict.fromkeys(targets, "403")
    refused = f"It tried to reach localhost:{own}, an address that is not a host name, metadata.google.internal:80"
    assert job["details"]["summary"].endswith(f"{refused}, {public}: not allowed here.")
    assert "refused: an address that is not a host name (7)" in log
    assert f"EGRESS lets programs and agents reach {listed}" in caplog.text, "it is logged at the start"


async def test_public_drafts_cannot_be_read_by_programs(tmp_path: Path) -> None:
    """If reading needs no login: neither directly nor by the proxy, even if the server itself is listed."""
    own = free_port()
    addresses = [("127.0.0.1", own), ("::1", own), ("0.0.0.0", own)]  # noqa: S104 - what a program tries
    program = f"""{ASK}
    def page(connection):
        connection.sendall(b"GET /pulls/1 HTTP/1.1\\r\\nHost: localhost:{own}\\r\\nConnection: close\\r\\n\\r\\n")
        return connection.makefile("rb").readline()
    for address in {addresses!r}:
        attempt(address[0], lambda: page(socket.create_connection(address, 5)))
    attempt("listed", lambda: through("localhost:{own}", b"GET /pulls/1 HTTP/1.1\\r\\n\\r\\n"))
    attempt("fetched", lambda: page(socket.create_connection(("127.0.0.1", 8702), 5)))
    attempt("relay", lambda: page(socket.create_connection(("127.0.0.1", 8701), 5)))
    report()
    """
    settings = {"egress": f"private:localhost:{own}", "port": own, "private_pages": False}
    async with hostile_world(tmp_path, program, **settings) as world:
        assert (await world.done("go"))["prLink"].endswith("/pulls/1")
        job = await world.done("and now that there is one")
        found = findings_of(world, job)
        assert (await world.client.get("/pulls/1")).status_code == 200, "who may look, may"
    assert found.pop("listed") == "403"
    assert "405" in found.pop("fetched")
    assert set(found.values()) == {"ConnectionRefusedError"}, found


async def test_no_other_kind_of_socket_leads_out(tmp_path: Path, inside: int) -> None:
    """No datagrams, so no DNS; no IPv6, no vsock, no packet sockets."""
    program = f"""{ASK}
    def sends(family, address):
        with socket.socket(family, socket.SOCK_DGRAM) as connection:
            connection.sendto(b"out", address)
    attempt("dns", lambda: sends(socket.AF_INET, ("8.8.8.8", 53)))
    attempt("dns, ipv6", lambda: sends(socket.AF_INET6, ("2001:4860:4860::8888", 53)))
    attempt("broadcast", lambda: sends(socket.AF_INET, ("192.168.255.255", 9)))
    attempt("multicast", lambda: sends(socket.AF_INET6, ("ff02::1", 9)))
    attempt("name", lambda: socket.getaddrinfo("example.com", 443))
    attempt("mapped", lambda: socket.create_connection(("::ffff:127.0.0.1", {inside}), 5))
    attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, 1)))
    attempt("packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
    attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
    report()
    """
    async with hostile_world(tmp_path, program, egress=f"private:localhost:{inside}") as world:
        found = findings_of(world, await world.done("go"))
    errors = {"OSError", "PermissionError", "gaierror", "ConnectionRefusedError"}
    assert len(found) == 9
    assert set(found.values()) <= errors, found


async def test_many_connections_and_endless_streams_end_with_the_run(tmp_path: Path) -> None:
    """The time limit ends the run, the server continues, and the listed host sees every connection end."""
    ended = asyncio.Semaphore(0)

    async def endlessly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while await reader.read(65_536):
                writer.write(b"x" * 65_536)
                await writer.drain()
        writer.close()
        ended.release()

    async with await asyncio.start_server(endlessly, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        program = f"""
    import socket, threading
    open_ones = []
    for _ in range(200):
        connection = socket.create_connection(("127.0.0.1", 8702), 20)
        connection.sendall(b"CONNECT localhost:{port} HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
        open_ones.append(connection)
    def pump(connection):
        while connection.recv(65_536):
            connection.sendall(b"y" * 65_536)
    threads = [threading.Thread(target=pump, args=(one,)) for one in open_ones[:4]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    """
        settings = {"egress": f"private:localhost:{port}", "time_limit": "2"}
        async with hostile_world(tmp_path, program, **settings) as world:
            job = await world.done("go")
            assert "took longer than 2 s" in job["details"]["reason"]
            async with asyncio.timeout(20):
                for _ in range(4):
                    await ended.acquire()
            assert (await world.client.get("/health")).status_code == 200
