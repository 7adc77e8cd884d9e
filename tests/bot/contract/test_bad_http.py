"""Raw bytes at the HTTP receiver, and broken bodies at the workspace: rejected, never a 500, never logged."""

import asyncio
import gzip
import io
import logging
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from support.worlds.jobserver_world import JOB, KEY, make_bare, running
from support.worlds.listening_world import listening

from bot.runtime.http.server import listening_socket
from bot.runtime.rotating_secrets import RotatingSecret
from bot.slack.receiving.transports.http_receiver import MAX_BODY, HttpReceiver, signature_of
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


BOMB = gzip.compress(b"a" * 50_000_000)


@pytest.mark.parametrize("body", [BOMB, b"not gzip at all"], ids=["a bomb", "not gzip"])
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
