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
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from support.fakes.slack_payloads import signed
from support.worlds.jobserver_world import JOB, KEY, make_bare, running
from support.worlds.listening_world import listening

from bot.runtime.http.bodies import read_up_to
from bot.runtime.http.server import (
    MOST_CONNECTIONS,
    HttpServer,
    listening_socket,
    mark_authenticated,
)
from bot.runtime.rotating_secrets import RotatingSecret
from bot.slack.receiving.http_receiver import MAX_BODY, HttpReceiver
from bot.workspace import WorkspaceServer

SECRET = "planted-secret-signing"
PLANTED = b"planted words of a person"
COMMAND = b"command=%2Fdocs&text=help&user_id=U1&channel_id=C1&team_id=T1"
UNSIGNED = "v0=" + "0" * 64
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def head(*more: str, path: str = "/slack/events") -> bytes:
    """The head of a request."""
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *more]).encode("latin-1") + b"\r\n\r\n"


def in_form(timestamp: str = "", signature: str = UNSIGNED) -> tuple[str, str]:
    """Headers that look like Slack's, by default with the current time."""
    return f"X-Slack-Request-Timestamp: {timestamp or int(time.time())}", f"X-Slack-Signature: {signature}"


def posted(path: str, size: int, sent: int) -> bytes:
    """A request of which this many bytes of its body are sent."""
    return head(f"Content-Length: {size}", path=path) + b"a" * sent


@dataclass
class Door:
    """A port, and the connections to it."""

    port: int
    connections: list[Connection] = field(default_factory=list)

    async def connect(self, raw: bytes = b"") -> Connection:
        """Opens a connection, and sends something on it."""
        made = await asyncio.open_connection("127.0.0.1", self.port)
        self.connections.append(made)
        with contextlib.suppress(ConnectionError):
            made[1].write(raw)
        return made

    async def send(self, raw: bytes, *, eof: bool = True) -> bytes:
        """Returns the response to raw bytes, and (`eof`) the client's end; empty if the connection is simply closed."""
        reader, writer = await self.connect(raw)
        try:
            if eof:
                writer.write_eof()
            async with asyncio.timeout(10):
                return await reader.read()
        except ConnectionError:
            return b""

    async def begin(self, head: bytes) -> bytes:
        """Returns the first line of the response to the beginning of a request."""
        reader, _ = await self.connect(head)
        async with asyncio.timeout(10):
            return await reader.readline()

    async def post(self, body: bytes, headers: Mapping[str, str] | None = None, *, age: float = 0.0) -> int:
        sent = signed(SECRET, body, age=age) | dict(headers or {})
        url = f"http://127.0.0.1:{self.port}/slack/events"
        async with aiohttp.ClientSession() as session, session.post(url, data=io.BytesIO(body), headers=sent) as answer:
            return answer.status

    async def ask(self) -> int:
        """Sends a command that is signed."""
        return await self.post(COMMAND)

    async def close(self) -> None:
        for _, writer in self.connections:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for _, writer in self.connections), return_exceptions=True)


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    """The port for Slack's requests. Behind it is a service that must not be called."""
    async with listening() as world:
        receiver = HttpReceiver(world.app, RotatingSecret(SECRET), listen=partial(listening_socket, "127.0.0.1", 0))
        await receiver.start()
        opened = Door(receiver.port)
        yield opened
        await receiver.stop(2)
        await opened.close()
        assert world.service.asked == 0


RAW = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + PLANTED,
    "less than announced": head("Content-Length: 500") + PLANTED,
    "two lengths": head("Content-Length: 1", "Content-Length: 2") + PLANTED,
    "length and chunks": head("Content-Length: 1", "Transfer-Encoding: chunked") + PLANTED,
    "broken chunks": head("Transfer-Encoding: chunked") + b"zz\r\n" + PLANTED,
    "a giant header": head("X-Big: " + "a" * 100_000) + PLANTED,
    "a broken path": b"GET /%ff%00%zz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a smuggled second request": head("Content-Length: 0") + head(),
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


async def test_a_long_chunked_body_is_refused(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    chunk = b"%x\r\n" % 65_536 + (PLANTED * 65_536)[:65_536] + b"\r\n"
    begun = head("Transfer-Encoding: chunked", *in_form(), "Connection: close")
    answer = await door.send(begun + chunk * (MAX_BODY // 65_536 + 2) + b"0\r\n\r\n", eof=False)
    assert answer.startswith(b"HTTP/1.1 413")
    assert PLANTED not in answer
    assert PLANTED.decode() not in caplog.text


async def test_an_unsigned_oversized_body_is_refused(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert await door.post(PLANTED * (MAX_BODY // len(PLANTED) + 1), {"X-Slack-Signature": UNSIGNED}) == 413
    assert PLANTED.decode() not in caplog.text


BOMB = gzip.compress(b"a" * 3_000_000)
"""The longest allowed body, in 3,000 bytes."""


@pytest.mark.parametrize("body", [BOMB, b"not gzip at all"], ids=["a bomb", "not gzip"])
@pytest.mark.parametrize("encoding", ["gzip", "identity, gzip", "x"])
async def test_compressed_bodies_are_refused(door: Door, body: bytes, encoding: str) -> None:
    """Slack sends none; they are not decompressed, signed or not."""
    assert await door.post(body, {"Content-Encoding": encoding}) == 415
    assert await door.post(b"{}", {"Content-Encoding": "identity"}) == 200


HEADS: dict[str, tuple[str, ...]] = {
    "no signature": (),
    "a time without a signature": in_form()[:1],
    "a signature without a time": in_form()[1:],
    "a short signature": in_form(signature="v0=0"),
    "a long signature": in_form(signature=UNSIGNED + "0"),
    "a signature in other digits": in_form(signature="v0=" + "\u00b2" * 64),
    "other digits": in_form("\u00b9" * 10),
    "too many digits": in_form("9" * 5_000),
    "in the past": in_form(str(int(time.time()) - 3_600)),
    "in the future": in_form(str(int(time.time()) + 86_400)),
}


@pytest.mark.parametrize("name", HEADS)
async def test_requests_not_from_slack_are_refused_before_their_body(door: Door, name: str) -> None:
    """The response comes although the body does not."""
    assert (await door.begin(head("Content-Length: 500", *HEADS[name]))).startswith(b"HTTP/1.1 401")


async def test_an_oversized_content_length_is_refused_before_the_body(door: Door) -> None:
    assert (await door.begin(head(f"Content-Length: {MAX_BODY + 1}", *in_form()))).startswith(b"HTTP/1.1 413")


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


@dataclass
class Receiver(Door):
    """In a process of its own."""

    process_id: int = 0

    @property
    def resident(self) -> int:
        """Bytes of memory."""
        status = Path(f"/proc/{self.process_id}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024

    async def attack(self, raw: bytes) -> None:
        """Sends something on a separate connection, as far as it is accepted."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            _, writer = await self.connect(raw)
            async with asyncio.timeout(0.5):
                await writer.drain()


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
    made = Receiver(int(await asyncio.to_thread(process.stdout.readline)), process_id=process.pid)
    yield made
    await made.close()


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


CHUNKED, ZIPPED = "Transfer-Encoding: chunked", "Content-Encoding: gzip"
ENDLESS_BOMB = chunk(BOMB)
ATTACKS = {
    "bombs": head(CHUNKED, ZIPPED) + ENDLESS_BOMB,
    "bombs that look signed": head(CHUNKED, ZIPPED, *in_form()) + ENDLESS_BOMB,
    "bombs elsewhere": head(CHUNKED, ZIPPED, *in_form(), path="/nowhere") + ENDLESS_BOMB,
    "large bodies": head("Content-Length: 3000000", *in_form()) + b"a" * 2_900_000,
    "large chunks": head(CHUNKED, *in_form()) + chunk(b"a" * 65_536) * 40,
    "tiny chunks": head(CHUNKED, *in_form()) + chunk(b"a") * 100_000,
    "endless bodies without a signature": head(CHUNKED) + chunk(b"a" * 65_536) * 40,
    "heads that never end": head(*in_form()).rstrip() + b"".join(b"\r\nX-%d: " % n + b"a" * 8_000 for n in range(100)),
    "another protocol": head("Connection: Upgrade", "Upgrade: x", *in_form()) + b"a" * 3_000_000,
    "many requests at once": head("Content-Length: 60000", *in_form(), path="/nowhere") + b"a" * 60_000,
}
TELLING = {"bombs that look signed", "many requests at once"}


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
        await asyncio.gather(*(receiver.attack(ATTACKS[attack]) for _ in range(79)))
    async with asyncio.timeout(20):
        assert await receiver.ask() == 200
    assert receiver.resident - before < ALLOWED


@dataclass
class Visited(Door):
    """A server that reads bodies, answers when told to, and knows who asks at /known."""

    server: HttpServer = field(kw_only=True)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, request: web.Request) -> web.Response:
        if request.path == "/known":
            mark_authenticated(request)
        await request.read()
        await self.may_answer.wait()
        return web.Response(text="here you are")

    async def pending(self, size: int) -> None:
        while self.server._pending.total != size:  # noqa: ASYNC110 - nobody tells that bytes have come
            await asyncio.sleep(0.01)


async def refuse(_: web.Request) -> web.Response:
    return web.Response(status=400)


@contextlib.asynccontextmanager
async def visited(**limits: Any) -> AsyncIterator[Visited]:
    app = web.Application(client_max_size=1 << 30)
    made = Visited(0, server=HttpServer(app, **limits))
    app.router.add_post("/refused", refuse)
    app.router.add_post("/{who}", made.read)
    await made.server.start(listening_socket("127.0.0.1", 0))
    made.port = made.server.port
    yield made
    await made.close()
    await made.server.stop()


@pytest.fixture
async def counting() -> AsyncIterator[Visited]:
    async with visited(request_seconds=0.5, most_connections=10, most_pending_bytes=1_000_000) as made:
        yield made


@pytest.mark.promise("strangers")
async def test_unsigned_bytes_count_until_the_request_ends(counting: Visited) -> None:
    whole, half = posted("/unknown", 1_000, 1_000), posted("/unknown", 1_000, 500)
    reader, _ = await counting.connect(whole)
    _, gone = await counting.connect(half)
    await counting.pending(len(whole) + len(half))
    gone.close()
    await counting.pending(len(whole))
    counting.may_answer.set()
    assert b"200 OK" in await reader.readline()
    await counting.pending(0)


@pytest.mark.promise("strangers")
async def test_verified_requests_do_not_count(counting: Visited) -> None:
    reader, _ = await counting.connect(posted("/known", 5_000_000, 5_000_000))
    counting.may_answer.set()
    assert b"200 OK" in await reader.readline()
    assert counting.server._pending.total == 0


@pytest.mark.promise("strangers")
async def test_a_body_is_read_no_further_than_needed_to_see_that_it_is_too_long() -> None:
    content = aiohttp.StreamReader(BaseProtocol(loop := asyncio.get_running_loop()), 2**16, loop=loop)
    content.feed_data(bytes(100_000))  # one piece may be larger than the limit
    content.feed_eof()
    assert len(await read_up_to(10, content)) == 11


@pytest.mark.promise("strangers")
async def test_the_largest_body_is_evicted_and_a_small_one_is_answered(
    counting: Visited, caplog: pytest.LogCaptureFixture
) -> None:
    small, _ = await counting.connect(posted("/unknown", 100, 100))
    large, _ = await counting.connect(posted("/unknown", 2_000_000, 1_999_999))
    with contextlib.suppress(ConnectionError):
        assert await large.read() == b""
    new, _ = await counting.connect(posted("/unknown", 100, 100))
    counting.may_answer.set()
    assert b"200 OK" in await small.readline()
    assert b"200 OK" in await new.readline()
    said = "unauthenticated requests use too much memory: closing the largest and slowest"
    assert [record.getMessage() for record in caplog.records] == [said]


@pytest.mark.promise("strangers")
async def test_the_rest_of_a_refused_body_is_not_waited_for_long(counting: Visited) -> None:
    """The missing part arrives after the answer, and the next request never ends."""
    reader, writer = await counting.connect(posted("/refused", 10, 5))
    async with asyncio.timeout(10):
        assert b"400" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"a" * 5 + posted("/unknown", 100, 50))
        with contextlib.suppress(ConnectionError):
            assert b"200 OK" not in await reader.read()


HANGING = 1_100


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4_096), hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.full
@pytest.mark.usefixtures("many_files")
async def test_a_thousand_half_sent_requests_do_not_block_others(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    hanging = [await door.connect(head("Content-Length: 500").rstrip()) for _ in range(HANGING)]
    async with asyncio.timeout(10):
        assert await door.ask() == 200
        ended = [asyncio.ensure_future(reader.read()) for reader, _ in hanging[: HANGING - MOST_CONNECTIONS]]
        await asyncio.wait(ended)  # the oldest was evicted
    await asyncio.gather(*ended, return_exceptions=True)
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.name for record in said] == ["bot.runtime.http.server"], [record.getMessage() for record in said]


WHOLE = posted("/unknown", 2, 2)


@pytest.mark.parametrize("begun", [b"P", WHOLE[:20], WHOLE[:-1]], ids=["a letter", "half a head", "half a body"])
async def test_a_slow_request_has_a_total_deadline(begun: bytes) -> None:
    async with visited(request_seconds=0.3) as there:
        reader, writer = await there.connect(begun)
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
    async with visited(request_seconds=0.2) as there:
        reader, writer = await there.connect(WHOLE)
        assert await _read_soon(reader) == b""
        await asyncio.sleep(0.4)  # longer than a request may take to arrive
        there.may_answer.set()
        async with asyncio.timeout(10):
            assert b"here you are" in await reader.readuntil(b"you are")
            writer.write(WHOLE)
            assert b"here you are" in await reader.readuntil(b"you are")


async def test_an_idle_connection_is_closed() -> None:
    async with visited(request_seconds=0.3, idle_seconds=0.2) as there:
        there.may_answer.set()
        silent, _ = await there.connect()
        reader, _ = await there.connect(WHOLE)
        async with asyncio.timeout(10):
            assert (await reader.read()).endswith(b"here you are")
            assert await silent.read() == b""


async def test_a_request_being_answered_is_never_evicted() -> None:
    async with visited(request_seconds=0.3, most_connections=2) as there:
        asked = [await there.connect(WHOLE) for _ in range(2)]
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
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    broken = (b"BREW\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n")
    answers = [await door.send(each, eof=False) for each in broken * 5]
    assert {answer.split(b"\r\n")[0].split(b" ")[1] for answer in answers} == {b"400"}
    strange = [b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path for path in (b"/", b"/health", b"/slack/events")]
    answers += [await door.send(each) for each in strange]
    assert [answer for answer in answers if b"aiohttp" in answer.lower() or b"python" in answer.lower()] == []
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1
    assert not said[0].exc_info


BAD_BODIES = {
    "not what its encoding says": head("Content-Encoding: gzip", "Content-Length: 9") + b"planted",
    "chunks that break off": head("Transfer-Encoding: chunked", path="/nowhere") + b"3\r\nabc\r\nzz\r\n",
    "never sent to its end": head("Content-Length: 9", path="/nowhere") + b"planted",
}


@pytest.mark.parametrize("sent", BAD_BODIES.values(), ids=BAD_BODIES)
async def test_a_body_that_breaks_off_after_the_answer_leaves_no_traceback(
    door: Door, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    assert (await door.begin(sent)).startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))
    await door.close()
    assert await door.ask() == 200
    assert [record for record in caplog.records if record.exc_info] == []


async def test_unsigned_requests_are_logged_once(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        assert await door.post(b"{}", {"X-Slack-Signature": ""}) == 401
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "a request that Slack did not sign, or signed over 5 minutes ago, is turned away"
    ]
