"""Unsigned bodies: however many are sent, and however compressed, they use little memory, and
signed requests get through.
"""

import asyncio
import contextlib
import gzip
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from bot.runtime.http.server import MOST_PENDING_BYTES, HttpServer, listening_socket, mark_authenticated
from bot.slack.receiving.transports.http_receiver import signature_of

pytestmark = pytest.mark.promise("strangers")

SECRET = "planted-secret-signing"
SENDERS = 395
ALLOWED = 80 << 20
"""Bytes by which a process may grow: pending bodies, the connections themselves, and Python's overhead: 33 MB; in one
run of sixty 65 MB, because of fragmentation. Without a limit it is 1 GB.
"""
COMMAND = b"command=%2Fdocs&text=help&user_id=U1&channel_id=C1&team_id=T1"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


# -- the receiver, from outside ---------------------------------------------------------------------------------------


@dataclass
class Receiver:
    port: int
    process_id: int
    connections: list[Connection] = field(default_factory=list)

    @property
    def resident(self) -> int:
        """Bytes of memory."""
        status = Path(f"/proc/{self.process_id}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024

    async def send(self, head: bytes, body: bytes) -> None:
        """Sends something on a separate connection, as far as it is accepted."""
        with contextlib.suppress(ConnectionError):
            made = await asyncio.open_connection("127.0.0.1", self.port)
            self.connections.append(made)
            made[1].write(head + body)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await made[1].drain()

    async def ask(self) -> int:
        """Sends a command that is signed."""
        stamp = str(int(time.time()))
        headers = {
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": signature_of(SECRET, stamp, COMMAND).decode(),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        url = f"http://127.0.0.1:{self.port}/slack/events"
        async with aiohttp.ClientSession() as client, client.post(url, data=COMMAND, headers=headers) as answer:
            return answer.status


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    tests = Path(__file__).parents[2]
    command = [sys.executable, "-m", "support.servers.http_receiver_process", SECRET]
    with subprocess.Popen(command, cwd=tests, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        yield started
        started.kill()


@pytest.fixture
async def receiver(process: subprocess.Popen[str]) -> AsyncIterator[Receiver]:
    assert process.stdout is not None
    made = Receiver(int(await asyncio.to_thread(process.stdout.readline)), process.pid)
    yield made
    await closed(made.connections)


async def closed(connections: list[Connection]) -> None:
    for _, writer in connections:
        writer.transport.abort()
    await asyncio.gather(*(writer.wait_closed() for _, writer in connections), return_exceptions=True)


def head(*more: str, path: str = "/slack/events", signed: bool = True) -> bytes:
    """The head of a request that looks like Slack's, or does not."""
    form = [f"X-Slack-Request-Timestamp: {int(time.time())}", "X-Slack-Signature: v0=" + "0" * 64] if signed else []
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *form, *more]).encode() + b"\r\n\r\n"


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


CHUNKED, ZIPPED = "Transfer-Encoding: chunked", "Content-Encoding: gzip"
BOMB = chunk(gzip.compress(b"a" * 3_000_000))
"""The longest allowed body, in 3,000 bytes; it never ends."""
ATTACKS = {
    "bombs": (head(CHUNKED, ZIPPED, signed=False), BOMB),
    "bombs that look signed": (head(CHUNKED, ZIPPED), BOMB),
    "bombs elsewhere": (head(CHUNKED, ZIPPED, path="/nowhere"), BOMB),
    "large bodies": (head("Content-Length: 3000000"), b"a" * 2_900_000),
    "large chunks": (head(CHUNKED), chunk(b"a" * 65_536) * 40),
    "tiny chunks": (head(CHUNKED), chunk(b"a") * 100_000),
    "endless bodies without a signature": (head(CHUNKED, signed=False), chunk(b"a" * 65_536) * 40),
    "heads that never end": (head().rstrip(), b"".join(b"\r\nX-%d: " % n + b"a" * 8_000 for n in range(100))),
    "another protocol": (head("Connection: Upgrade", "Upgrade: x"), b"a" * 3_000_000),
    "many requests at once": (b"", head("Content-Length: 60000", path="/nowhere") + (b"a" * 60_000)),
}
TELLING = {"bombs that look signed", "endless bodies without a signature", "many requests at once"}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at the memory as Linux shows it")
@pytest.mark.parametrize(
    "attack", [pytest.param(name, marks=() if name in TELLING else pytest.mark.full) for name in ATTACKS]
)
async def test_unsigned_requests_use_little_memory_and_block_no_signed_ones(receiver: Receiver, attack: str) -> None:
    """395 at a time, none of which ends."""
    assert await receiver.ask() == 200
    before = receiver.resident
    for _ in range(SENDERS // 79):
        await asyncio.gather(*(receiver.send(*ATTACKS[attack]) for _ in range(79)))
    async with asyncio.timeout(20):
        assert await receiver.ask() == 200
    assert receiver.resident - before < ALLOWED


# -- the server, from inside ------------------------------------------------------------------------------------------


@dataclass
class Counting:
    """A server that reads bodies, and marks requests as authenticated on demand."""

    server: HttpServer
    may_answer: asyncio.Event
    connections: list[Connection] = field(default_factory=list)

    async def send(self, raw: bytes) -> Connection:
        made = await asyncio.open_connection("127.0.0.1", self.server.port)
        self.connections.append(made)
        made[1].write(raw)
        return made

    async def pending(self, size: int) -> None:
        while self.server.pending_bytes != size:  # noqa: ASYNC110 - nobody tells that bytes have come
            await asyncio.sleep(0.01)


@pytest.fixture
async def counting() -> AsyncIterator[Counting]:
    may_answer = asyncio.Event()

    async def read(request: web.Request) -> web.Response:
        if request.path == "/known":
            mark_authenticated(request)
        await request.read()
        await may_answer.wait()
        return web.Response(text="here you are")

    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=400)

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/known", read)
    app.router.add_post("/unknown", read)
    app.router.add_post("/refused", refuse)
    server = HttpServer(app, request_seconds=0.5, most_connections=10, most_pending_bytes=1_000_000)
    await server.start(listening_socket("127.0.0.1", 0))
    made = Counting(server, may_answer)
    yield made
    await closed(made.connections)
    await server.stop()


def post(path: str, size: int, sent: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode() + b"a" * sent


async def test_unsigned_bytes_count_until_the_request_ends(counting: Counting) -> None:
    whole, half = post("/unknown", 1_000, 1_000), post("/unknown", 1_000, 500)
    reader, _ = await counting.send(whole)
    _, gone = await counting.send(half)
    await counting.pending(len(whole) + len(half))
    gone.close()
    await counting.pending(len(whole))
    counting.may_answer.set()
    assert b"200 OK" in await reader.readline()
    await counting.pending(0)


async def test_verified_requests_do_not_count(counting: Counting) -> None:
    reader, _ = await counting.send(post("/known", 5_000_000, 5_000_000))
    counting.may_answer.set()
    assert b"200 OK" in await reader.readline()
    assert counting.server.pending_bytes == 0


async def test_the_largest_body_is_evicted_and_a_small_one_is_answered(
    counting: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    small, _ = await counting.send(post("/unknown", 100, 100))
    large, _ = await counting.send(post("/unknown", 2_000_000, 1_999_999))
    with contextlib.suppress(ConnectionError):
        assert await large.read() == b""
    new, _ = await counting.send(post("/unknown", 100, 100))
    counting.may_answer.set()
    assert b"200 OK" in await small.readline()
    assert b"200 OK" in await new.readline()
    said = "unauthenticated requests use too much memory: closing the largest and slowest"
    assert [record.getMessage() for record in caplog.records] == [said]


async def test_the_rest_of_a_refused_body_is_not_waited_for_long(counting: Counting) -> None:
    """The missing part arrives after the answer, and the next request never ends."""
    reader, writer = await counting.send(post("/refused", 10, 5))
    async with asyncio.timeout(10):
        assert b"400" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"a" * 5 + post("/unknown", 100, 50))
        with contextlib.suppress(ConnectionError):
            assert b"200 OK" not in await reader.read()


def test_the_limit_of_unsigned_bytes_is_16_megabytes() -> None:
    assert MOST_PENDING_BYTES == 16 * 1024 * 1024
