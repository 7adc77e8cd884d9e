"""Clients that hang, drip or send garbage: the next one is answered soon, and the log stays short."""

import asyncio
import contextlib
import logging
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from support.fakes.ephemeral import unreachable_ephemeral
from support.worlds.jobserver_world import make_bare, running

from bot.runtime.health.report import ComponentStatus, Health
from bot.runtime.http.health_page import HealthPage
from bot.runtime.http.server import MOST_CONNECTIONS, HttpServer, listening_socket
from bot.runtime.rotating_secrets import RotatingSecret
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.receiving.transports.http_receiver import HttpReceiver, signature_of
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import new_session

HANGING = 1_100
SECRET = "planted-secret-signing"
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
