"""Raw bytes at the HTTP receiver, and broken bodies at the workspace: rejected, never a 500, never logged."""

import asyncio
import contextlib
import gzip
import io
import logging
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from support.fakes.ephemeral import unreachable_ephemeral
from support.worlds.jobserver_world import JOB, KEY, make_bare, running
from support.worlds.listening_world import listening

from bot.runtime.health import ComponentStatus, Health
from bot.runtime.http.health_pages import HealthPage
from bot.runtime.http.server import (
    MOST_CONNECTIONS,
    HttpServer,
    listening_socket,
    mark_authenticated,
)
from bot.runtime.rotating_secrets import RotatingSecret
from bot.slack.receiving.http_receiver import MAX_BODY, HttpReceiver, signature_of
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import new_session
from bot.workspace import WorkspaceServer

SECRET = "planted-secret-signing"
PLANTED = b"planted words of a person"


@dataclass
class Door:
    port: int

    async def send(self, raw: bytes, *, eof: bool = True) -> bytes:
        """Returns the response to raw bytes, and (`eof`) the client's end; empty if the connection is simply closed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(raw)
            if eof:
                writer.write_eof()
            async with asyncio.timeout(10):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def begin(self, head: bytes) -> bytes:
        """Returns the first line of the response to the beginning of a request."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(head)
        async with asyncio.timeout(10):
            line = await reader.readline()
        writer.close()
        return line

    async def post(self, body: bytes, headers: Mapping[str, str] | None = None, *, age: float = 0.0) -> int:
        stamp = str(int(time.time() - age))
        sent = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature_of(SECRET, stamp, body).decode()}
        url = f"http://127.0.0.1:{self.port}/slack/events"
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=io.BytesIO(body), headers=sent | dict(headers or {})) as answer,
        ):
            return answer.status


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    """Behind it is a service that must not be called."""
    async with listening() as world:
        receiver = HttpReceiver(world.app, RotatingSecret(SECRET), listen=partial(listening_socket, "127.0.0.1", 0))
        await receiver.start()
        yield Door(receiver.port)
        await receiver.stop(2)
        assert world.service.asked == 0


def request(head: str, body: bytes = b"") -> bytes:
    return head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body


UNSIGNED = "v0=" + "0" * 64


def in_form(timestamp: str = "", signature: str = UNSIGNED) -> str:
    """Headers that look like Slack's, by default with the current time."""
    return f"X-Slack-Request-Timestamp: {timestamp or int(time.time())}\nX-Slack-Signature: {signature}"


RAW = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + PLANTED,
    "nothing": b"",
    "half a head": b"POST /slack/events HTTP/1.1\r\nHost: x",
    "less than announced": request("POST /slack/events HTTP/1.1\nHost: x\nContent-Length: 500", PLANTED),
    "a negative length": request("POST /slack/events HTTP/1.1\nHost: x\nContent-Length: -1", PLANTED),
    "a length of words": request("POST /slack/events HTTP/1.1\nHost: x\nContent-Length: many", PLANTED),
    "two lengths": request("POST /slack/events HTTP/1.1\nHost: x\nContent-Length: 1\nContent-Length: 2", PLANTED),
    "length and chunks": request(
        "POST /slack/events HTTP/1.1\nHost: x\nContent-Length: 1\nTransfer-Encoding: chunked", PLANTED
    ),
    "broken chunks": request("POST /slack/events HTTP/1.1\nHost: x\nTransfer-Encoding: chunked", b"zz\r\n" + PLANTED),
    "a giant header": request("POST /slack/events HTTP/1.1\nHost: x\nX-Big: " + "a" * 100_000, PLANTED),
    "a header with a null": request("POST /slack/events HTTP/1.1\nHost: x\nX-Null: a\x00b", PLANTED),
    "no host": request("POST /slack/events HTTP/1.1\nContent-Length: 2", b"{}"),
    "an unknown method": request("BREW /slack/events HTTP/1.1\nHost: x\nContent-Length: 0"),
    "another method": request("PUT /slack/events HTTP/1.1\nHost: x\nContent-Length: 2", b"{}"),
    "a path with dots": request("GET /slack/../../etc/passwd HTTP/1.1\nHost: x"),
    "a broken path": request("GET /%ff%00%zz HTTP/1.1\nHost: x"),
    "a smuggled second request": request(
        "POST /slack/events HTTP/1.1\nHost: x\nContent-Length: 0", request("POST /slack/events HTTP/1.1\nHost: x")
    ),
}


@pytest.mark.parametrize("name", RAW)
async def test_malformed_raw_http_is_refused_and_the_next_request_answered(
    door: Door, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = await door.send(RAW[name])
    assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), answer[:100]
    assert PLANTED not in answer
    assert PLANTED.decode() not in caplog.text
    assert await door.post(b"{}") == 200


@pytest.mark.parametrize("age", [302, 3_600, -302])
async def test_a_replayed_request_is_refused(door: Door, age: float) -> None:
    assert await door.post(b'{"text": "again"}', age=age) == 401


async def test_a_long_chunked_body_is_refused(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    chunk = b"%x\r\n" % 65_536 + (PLANTED * 65_536)[:65_536] + b"\r\n"
    head = request(f"POST /slack/events HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n{in_form()}\nConnection: close")
    answer = await door.send(head + chunk * (MAX_BODY // 65_536 + 2) + b"0\r\n\r\n", eof=False)
    assert answer.startswith(b"HTTP/1.1 413")
    assert PLANTED not in answer
    assert PLANTED.decode() not in caplog.text


async def test_an_unsigned_oversized_body_is_refused(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert await door.post(PLANTED * (MAX_BODY // len(PLANTED) + 1), {"X-Slack-Signature": UNSIGNED}) == 413
    assert PLANTED.decode() not in caplog.text


BOMB_BODY = gzip.compress(b"a" * 50_000_000)


@pytest.mark.parametrize("body", [BOMB_BODY, b"not gzip at all"], ids=["a bomb", "not gzip"])
@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "br", "zstd", "identity, gzip", "x"])
async def test_compressed_bodies_are_refused(door: Door, body: bytes, encoding: str) -> None:
    """Slack sends none; they are not decompressed, signed or not."""
    assert await door.post(body, {"Content-Encoding": encoding}) == 415
    assert await door.post(b"{}", {"Content-Encoding": "identity"}) == 200


HEADS = {
    "no signature": "",
    "a time without a signature": f"X-Slack-Request-Timestamp: {int(time.time())}",
    "a signature without a time": "X-Slack-Signature: " + UNSIGNED,
    "another scheme": in_form(signature="v1=" + "0" * 64),
    "a short signature": in_form(signature="v0=0"),
    "a long signature": in_form(signature=UNSIGNED + "0"),
    "a signature in capitals": in_form(signature="v0=" + "A" * 64),
    "a signature in other digits": in_form(signature="v0=" + "\u00b2" * 64),
    "no number": in_form("soon"),
    "a fraction": in_form(f"{time.time()}"),
    "a sign": in_form(f"+{int(time.time())}"),
    "an exponent": in_form("1e9"),
    "an underscore": in_form("1_700_000_000"),
    "other digits": in_form("\u00b9" * 10),
    "too many digits": in_form("9" * 5_000),
    "long ago": in_form("0"),
    "in the past": in_form(str(int(time.time()) - 3_600)),
    "in the future": in_form(str(int(time.time()) + 86_400)),
}


@pytest.mark.parametrize("name", HEADS)
async def test_requests_not_from_slack_are_refused_before_their_body(door: Door, name: str) -> None:
    """The response comes although the body does not."""
    head = request(f"POST /slack/events HTTP/1.1\nHost: x\nContent-Length: 500\n{HEADS[name]}".rstrip())
    assert (await door.begin(head)).startswith(b"HTTP/1.1 401")


async def test_an_oversized_content_length_is_refused_before_the_body(door: Door) -> None:
    head = request(f"POST /slack/events HTTP/1.1\nHost: x\nContent-Length: {MAX_BODY + 1}\n{in_form()}")
    assert (await door.begin(head)).startswith(b"HTTP/1.1 413")


async def test_meaningless_signed_bodies_are_not_logged(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for body in (PLANTED, b"[" + PLANTED, b'{"type": "' + PLANTED + b'"}', b"payload=" + PLANTED, b"\xff" + PLANTED):
        for kind in ("application/json", "application/x-www-form-urlencoded", "text/plain"):
            assert await door.post(body, {"Content-Type": kind}) in {200, 400}
    assert PLANTED.decode() not in caplog.text


PARTS = b'--x\r\nContent-Disposition: form-data;\x00 name="channel"\r\n\r\nC1\r\n--x--\r\n'


async def test_the_workspace_and_the_job_server_refuse_malformed_bodies_too(tmp_path: Path) -> None:
    """Found by fuzzing: each was a 500."""
    workspace = WorkspaceServer()
    origin = await workspace.start()
    slack = {"Authorization": f"Bearer {workspace.credentials.bot_token}"}
    parts, zipped = {"Content-Type": "multipart/form-data; boundary=x"}, {"Content-Encoding": "gzip"}
    form, as_json = {"Content-Type": "application/x-www-form-urlencoded"}, {"Content-Type": "application/json"}
    async with (
        running(make_bare(tmp_path / "r.git", {"a.md": "a"}), tmp_path / "data") as jobs,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
    ):
        calls = [
            (f"{origin}/api/users.info", slack | parts, PARTS, 200),
            (f"{origin}/api/users.info", slack | parts | zipped, PARTS, 200),
            (f"{origin}/api/users.info", slack | form | zipped, b"user=U1", 200),
            (f"{origin}/page/send", as_json | zipped, b"{}", 200),
            (f"{origin}/commands/T1/none", as_json | zipped, b"{}", 400),
            (f"{jobs.url}{JOB}", {"Authorization": f"Bearer {KEY}"} | as_json | zipped, b"{}", 400),
        ]
        for url, headers, body, status in calls:
            async with session.post(url, headers=headers, data=body) as answer:
                assert (url, answer.status) == (url, status)
    await workspace.stop()


SENDERS = 395
ALLOWED = 80 << 20
"""Bytes by which a process may grow: pending bodies, the connections themselves, and Python's overhead: 33 MB; in one
run of sixty 65 MB, because of fragmentation. Without a limit it is 1 GB.
"""
COMMAND = b"command=%2Fdocs&text=help&user_id=U1&channel_id=C1&team_id=T1"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


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


@pytest.mark.promise("strangers")
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


@pytest.mark.promise("strangers")
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


@pytest.mark.promise("strangers")
async def test_verified_requests_do_not_count(counting: Counting) -> None:
    reader, _ = await counting.send(post("/known", 5_000_000, 5_000_000))
    counting.may_answer.set()
    assert b"200 OK" in await reader.readline()
    assert counting.server.pending_bytes == 0


@pytest.mark.promise("strangers")
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


@pytest.mark.promise("strangers")
async def test_the_rest_of_a_refused_body_is_not_waited_for_long(counting: Counting) -> None:
    """The missing part arrives after the answer, and the next request never ends."""
    reader, writer = await counting.send(post("/refused", 10, 5))
    async with asyncio.timeout(10):
        assert b"400" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"a" * 5 + post("/unknown", 100, 50))
        with contextlib.suppress(ConnectionError):
            assert b"200 OK" not in await reader.read()


HANGING = 1_100
HALF = b"POST /slack/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n"
Ask = Callable[[], Awaitable[int]]
Served = contextlib.AbstractAsyncContextManager[tuple[int, Ask]]


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4_096), hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.asynccontextmanager
async def slack(_: Path) -> AsyncIterator[tuple[int, Ask]]:
    """The port for Slack's requests, and a signed one."""
    session = new_session()
    identity = Identity(team_id="T1", team="Team", bot_user_id="U0BOT", bot_id="B0BOT")
    app = SlackApp(
        object(),  # type: ignore[arg-type]  # is not asked
        identity=identity,
        message_context=MessageContext(),
        ephemeral_sender=unreachable_ephemeral(session),
    )
    receiver = HttpReceiver(app, RotatingSecret(SECRET), listen=partial(listening_socket, "127.0.0.1", 0))
    await receiver.start()
    url, body = (
        f"http://127.0.0.1:{receiver.port}/slack/events",
        b"command=%2Fdocs&text=help&user_id=U1&channel_id=C1&team_id=T1",
    )

    async def ask() -> int:
        stamp = str(int(time.time()))
        headers = {
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": signature_of(SECRET, stamp, body).decode(),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        async with aiohttp.ClientSession() as client, client.post(url, data=body, headers=headers) as answer:
            return answer.status

    yield receiver.port, ask
    await receiver.stop(2)
    await session.close()


@contextlib.asynccontextmanager
async def health(_: Path) -> AsyncIterator[tuple[int, Ask]]:
    """The port for health checks, and one."""
    page = HealthPage(Health(lambda: [ComponentStatus("outbox")]), listen=partial(listening_socket, "127.0.0.1", 0))
    await page.start()
    assert page._server is not None
    port = page._server.port
    yield port, lambda: _get(f"http://127.0.0.1:{port}/health")
    await page.stop()


@contextlib.asynccontextmanager
async def jobs(tmp_path: Path) -> AsyncIterator[tuple[int, Ask]]:
    """The job server's port, and a request to it."""
    async with running(make_bare(tmp_path / "r.git", {"a.md": "a"}), tmp_path / "data") as server:
        yield int(server.url.rsplit(":", 1)[1]), lambda: _get(f"{server.url}/health")


async def _get(url: str) -> int:
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        return answer.status


async def half_sent(port: int, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connections on which only the beginning of a request is ever sent."""
    made = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            writer.write(HALF)
        made.append((reader, writer))
    return made


async def all_closed(connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
    for _, writer in connections:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for _, writer in connections), return_exceptions=True)


@pytest.mark.full
@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("serving", [slack, health, jobs])
async def test_a_thousand_half_sent_requests_do_not_block_others(
    serving: Callable[[Path], Served], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as (port, ask):
        hanging = await half_sent(port, HANGING)
        async with asyncio.timeout(10):
            assert await ask() == 200
            ended = [asyncio.ensure_future(reader.read()) for reader, _ in hanging[: HANGING - MOST_CONNECTIONS]]
            await asyncio.wait(ended)  # the oldest was evicted
        await asyncio.gather(*ended, return_exceptions=True)
        said = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert [record.name for record in said] == ["bot.runtime.http.server"], [record.getMessage() for record in said]
        await all_closed(hanging)


@dataclass
class Plain:
    """A server with short limits, whose one address reads a body and answers when told to."""

    server: HttpServer
    may_answer: asyncio.Event
    connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        made = await asyncio.open_connection("127.0.0.1", self.server.port)
        self.connections.append(made)
        return made


@contextlib.asynccontextmanager
async def plain(request_seconds: float = 0.3, idle_seconds: float = 30.0, most: int = 3) -> AsyncIterator[Plain]:
    may_answer = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await may_answer.wait()
        return web.Response(text="here you are")

    app = web.Application()
    app.router.add_post("/", answer)
    server = HttpServer(app, request_seconds=request_seconds, idle_seconds=idle_seconds, most_connections=most)
    await server.start(listening_socket("127.0.0.1", 0))
    there = Plain(server, may_answer)
    yield there
    await server.stop()
    await all_closed(there.connections)


WHOLE = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"


@pytest.mark.parametrize("begun", [b"P", WHOLE[:20], WHOLE[:-1]], ids=["a letter", "half a head", "half a body"])
async def test_a_slow_request_has_a_total_deadline(begun: bytes) -> None:
    async with plain() as there:
        reader, writer = await there.connect()
        writer.write(begun)
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof() and not await _read_soon(reader):
                    writer.write(b" " if begun == b"P" else b"")


async def _read_soon(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(1), 0.05)
    except TimeoutError:
        return b""


async def test_a_slow_handler_keeps_its_connection_for_reuse() -> None:
    async with plain(request_seconds=0.2) as there:
        reader, writer = await there.connect()
        writer.write(WHOLE)
        assert await _read_soon(reader) == b""
        await asyncio.sleep(0.4)  # longer than a request may take to arrive
        there.may_answer.set()
        async with asyncio.timeout(10):
            assert b"here you are" in await reader.readuntil(b"you are")
            writer.write(WHOLE)
            assert b"here you are" in await reader.readuntil(b"you are")


async def test_an_idle_connection_is_closed() -> None:
    async with plain(idle_seconds=0.2) as there:
        there.may_answer.set()
        silent, _ = await there.connect()
        reader, writer = await there.connect()
        writer.write(WHOLE)
        async with asyncio.timeout(10):
            assert (await reader.read()).endswith(b"here you are")
            assert await silent.read() == b""


async def test_a_request_being_answered_is_never_evicted() -> None:
    async with plain(most=2) as there:
        asked = [await there.connect() for _ in range(2)]
        for _, writer in asked:
            writer.write(WHOLE)
        while len(there.server.waiting):  # noqa: ASYNC110 - nobody tells that a request has come in
            await asyncio.sleep(0.01)
        third, _ = await there.connect()
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionError):
                assert await third.read() == b""
            there.may_answer.set()
            for reader, _ in asked:
                assert b"here you are" in await reader.readuntil(b"you are")


async def test_unreadable_requests_are_logged_once_without_traceback_or_version(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with slack(tmp_path) as (port, _):
        answers = await _broken_and_strange(port)
    assert {answer.split(b"\r\n")[0].split(b" ")[1] for answer in answers[:15]} == {b"400"}
    assert [answer for answer in answers if b"aiohttp" in answer.lower() or b"python" in answer.lower()] == []
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1
    assert not said[0].exc_info


async def _broken_and_strange(port: int) -> list[bytes]:
    answers = []
    for broken in (b"BREW\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n") * 5:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(broken)
        async with asyncio.timeout(10):
            answers.append(await reader.read())
        writer.close()
    async with aiohttp.ClientSession() as client:
        for path in ("/", "/health", "/slack/events"):
            async with client.get(f"http://127.0.0.1:{port}{path}") as answer:
                answers.append(str(answer.headers).encode() + await answer.read())
    return answers


BAD_BODIES = {
    "not what its encoding says": b"POST /slack/events HTTP/1.1\r\nHost: x\r\n"
    b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\nplanted",
    "chunks that break off": b"POST /nowhere HTTP/1.1\r\nHost: x\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
    "never sent to its end": b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nplanted",
}


@pytest.mark.parametrize("sent", BAD_BODIES.values(), ids=BAD_BODIES)
async def test_a_body_that_breaks_off_after_the_answer_leaves_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    async with slack(tmp_path) as (port, ask):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(10):
            assert (await reader.readline()).startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))
        writer.close()
        assert await ask() == 200
    assert [record for record in caplog.records if record.exc_info] == []


async def test_unsigned_requests_are_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with slack(tmp_path) as (port, _), aiohttp.ClientSession() as client:
        for _ in range(5):
            async with client.post(f"http://127.0.0.1:{port}/slack/events", data=b"{}") as answer:
                assert answer.status == 401
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "a request that Slack did not sign, or signed over 5 minutes ago, is turned away"
    ]
