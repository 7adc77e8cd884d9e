"""The model relay, between a real client and a real server: keys, streams, and hostile clients."""

import asyncio
import contextlib
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from support.servers.relayed_model import KEY, RelayWorld, broken_off, relay_world, upstream_server

from bot.errors import ConfigError
from bot.jobserver.egress.model_api import ModelApi
from bot.jobserver.egress.model_relay import LARGEST_REQUEST, model_relay
from bot.jobserver.egress.providers import ANTHROPIC, GEMINI, OPENAI, ModelLogin
from bot.jobserver.egress.upstream_proxy import proxy_for
from bot.jobserver.usage import Spent

ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
BODY = json.dumps(ASKED).encode()


@pytest.fixture
async def world() -> AsyncIterator[RelayWorld]:
    async with relay_world() as world:
        yield world


def head(world: RelayWorld, *lines: str, token: bool = True) -> bytes:
    given = [f"x-api-key: {world.run.token}"] if token else []
    return "\r\n".join([*lines, *given, "", ""]).encode()


async def test_the_key_replaces_the_token_and_the_body_passes_unchanged(world: RelayWorld) -> None:
    """Connection headers, cookies and unknown headers are not passed."""
    given = {"x-api-key": world.run.token, "anthropic-version": "1", "Cookie": "a=b", "X-Unknown": "x", "Via": "y"}
    async with world.post(
        "/v1/messages?beta=true", data=BODY, headers={**given, "Content-Type": "application/json"}
    ) as r:
        assert (r.status, await r.json()) == (200, {"ok": True})
    request, body = world.upstream.asked[0]
    assert (request.path_qs, body) == ("/v1/messages?beta=true", BODY)
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "1"
    assert not {"Cookie", "X-Unknown", "Via", "Authorization"} & set(request.headers)
    assert world.run.token not in str(dict(request.headers))
    assert (len(world.upstream.asked), world.refused) == (1, [])
    assert KEY not in repr(world.run)


async def test_how_the_last_answer_with_tools_ended_is_known(world: RelayWorld) -> None:
    """Not of a side call, of counting tokens, or of an earlier attempt."""

    async def refused(_: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"message": "Overloaded"}}, status=529)

    async def asked(path: str = "/v1/messages", **more: object) -> str | None:
        with contextlib.suppress(aiohttp.ClientError):
            async with world.post(path, json={**ASKED, **more}) as r:
                await r.read()
        return world.run.last.fault if world.run.last else None

    tools = [{"name": "edit", "input_schema": {"type": "object"}}]
    world.upstream.answer = broken_off
    assert await asked() is None
    assert await asked(tools=tools) == "its model's answer was cut off"
    world.upstream.answer = refused
    assert await asked(tools=tools) == "its model's API answered with an error (529): Overloaded"
    world.upstream.answer = None
    assert await asked(tools=tools) is None
    world.upstream.answer = refused
    assert await asked() is None
    assert await asked("/v1/messages/count_tokens", tools=tools) is None


@pytest.mark.parametrize(
    ("api", "header", "path"),
    [
        (OPENAI, OPENAI.header, "/v1/models"),
        (OPENAI, "api-key", "/v1/models"),
        (GEMINI, GEMINI.header, "/v1beta/models?pageSize=5"),
    ],
)
async def test_each_api_gets_its_key_where_it_expects_it(api: ModelApi, header: str, path: str) -> None:
    async with relay_world(api, header=header) as world:
        async with world.session.get(f"http://r{path}", headers={"Authorization": f"Bearer {world.run.token}"}) as r:
            assert r.status == 200
        sent = world.upstream.asked[0][0].headers
        assert sent[header] == (f"Bearer {KEY}" if header == "authorization" else KEY)


async def test_only_the_settings_model_and_those_that_may_be_chosen_are_reached() -> None:
    async with relay_world(model="m", choices=("n",)) as world:
        for model, status in (("m", 200), ("n", 200), ("other", 403)):
            async with world.post(json=ASKED | {"model": model}) as r:
                assert r.status == status
        assert [json.loads(body)["model"] for _, body in world.upstream.asked] == ["m", "n"]


@pytest.mark.parametrize("keys", [{}, {"x-api-key": "wrong"}, {"x-api-key": ""}, {"x-goog-api-key": KEY}])
async def test_a_client_without_the_runs_token_gets_nothing(world: RelayWorld, keys: dict[str, str]) -> None:
    async with world.post(json=ASKED, headers=keys) as r:
        assert r.status == 401
        assert (await r.json())["error"]["type"] == "authentication_error"
    assert (world.upstream.asked, world.refused) == ([], ["its model's API (a wrong token)"])


async def test_a_rotated_key_is_reloaded_and_a_missing_one_reported() -> None:
    keys = iter(["first-key", "first-key", "second-key"])  # the first is read at the start

    def key() -> str:
        if (found := next(keys, None)) is None:
            raise ConfigError(["ANTHROPIC_API_KEY_FILE names a file that cannot be read: gone"])
        return found

    async with relay_world(key=key) as world:
        for _ in range(2):
            async with world.post(json=ASKED) as r:
                assert r.status == 200
        async with world.post(json=ASKED) as r:
            assert r.status == 502
            assert "cannot be read: gone" in await r.text()
        assert [request.headers["x-api-key"] for request, _ in world.upstream.asked] == ["first-key", "second-key"]


async def test_events_are_streamed_as_they_are_sent(world: RelayWorld) -> None:
    """The second event is sent only once the first one has arrived."""
    arrived = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Set-Cookie": "a=b", "X-Odd": "1"})
        await response.prepare(request)
        await response.write(b'data: {"message": {"usage": {"input_tokens": 7}}}\n\n')
        await arrived.wait()
        await response.write(b'data: {"usage": {"output_tokens": 5}}\n\n')
        return response

    told: list[Spent] = []
    world.run.tell = told.append
    world.upstream.answer = answer
    async with asyncio.timeout(10), world.post(json=ASKED) as r:
        assert b"input_tokens" in await r.content.readany()
        arrived.set()
        assert b"output_tokens" in await r.content.read()
    assert r.headers["Content-Type"] == "text/event-stream"
    assert not {"Set-Cookie", "X-Odd"} & set(r.headers)
    assert told == [Spent(7, 5)]


async def test_a_disconnecting_client_cancels_the_model_request(world: RelayWorld) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        began.set()
        return await asyncio.Event().wait()  # type: ignore[return-value]

    began = asyncio.Event()
    world.upstream.answer = silent
    asking = asyncio.ensure_future(world.post(json=ASKED))
    async with asyncio.timeout(10):
        await began.wait()
        asking.cancel()
        await world.upstream.gone.wait()


async def test_streams_and_slow_requests_end_with_the_run() -> None:
    """Neither the request to the model nor the socket is left."""

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x")
        return await asyncio.Event().wait()  # type: ignore[return-value]

    async with upstream_server() as upstream:
        upstream.answer = endless
        login = ModelLogin(ANTHROPIC, ANTHROPIC.header, "KEY", lambda _: KEY, upstream.url)
        async with model_relay(login, lambda _: None) as run:
            assert stat.S_IMODE(run.socket.parent.stat().st_mode) == 0o700
            reader, writer = await asyncio.open_unix_connection(run.socket)
            request = (
                f"POST /v1/messages HTTP/1.1\r\nHost: r\r\nx-api-key: {run.token}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(BODY)}\r\n\r\n"
            )
            writer.write(request.encode() + BODY)
            slow_reader, slow_writer = await asyncio.open_unix_connection(run.socket)
            slow_writer.write(request.encode() + BODY[:-1])
            async with asyncio.timeout(10):
                await reader.readuntil(b"x")
        async with asyncio.timeout(10):
            await reader.read()
            await slow_reader.read()
            await upstream.gone.wait()
        writer.close()
        slow_writer.close()
        assert not run.socket.parent.exists()


async def test_redirects_are_not_followed_and_errors_passed_on_without_the_key(world: RelayWorld) -> None:
    async def redirect(request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"})

    async def refuse(request: web.Request) -> web.StreamResponse:
        text = f'{{"error": {{"message": "wrong key {KEY}"}}}}'
        return web.Response(status=401, text=text, headers={"Retry-After": "5", "WWW-Authenticate": KEY})

    world.upstream.answer = redirect
    async with world.post(json=ASKED, allow_redirects=False) as r:
        assert (r.status, "Location" in r.headers) == (502, False)
        assert "redirects" in (await r.json())["error"]["message"]
    world.upstream.answer = refuse
    async with world.post(json=ASKED) as r:
        assert (r.status, r.headers["Retry-After"]) == (401, "5")
        assert (await r.text()) == '{"error": {"message": "wrong key [secret]"}}'
        assert KEY not in str(r.headers)


async def test_a_truncated_answer_does_not_look_complete(world: RelayWorld) -> None:
    world.upstream.answer = broken_off
    with pytest.raises(aiohttp.ClientError):
        async with world.post(json=ASKED) as r:
            await r.read()


async def test_an_unreachable_address_is_reported() -> None:
    async with relay_world(address="http://127.0.0.1:1/v1") as world, world.post(json=ASKED) as r:
        assert r.status == 502
        assert "cannot reach 127.0.0.1" in (await r.json())["error"]["message"]


async def test_the_servers_proxy_is_used_unless_no_proxy_excludes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with upstream_server() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with relay_world(address="http://models.example/v1") as world, world.post(json=ASKED) as r:
            assert r.status == 200
        assert [request.headers["Host"] for request, _ in proxy.asked] == ["models.example"]
        monkeypatch.setenv("NO_PROXY", "models.example")
        assert proxy_for("http://models.example/v1") is None
        assert proxy_for("http://other.example/v1") == proxy.url
        assert proxy_for("http://127.0.0.1:1/v1") is None


@pytest.mark.parametrize(
    "target",
    [
        "/v1/files", "/v1/messages/batches", "/v1/messages/", "//v1/messages", "/v1//messages", "/v1/x/../messages",
        "/v1/%6dessages", "/v1/messages%2f..%2ffiles", "/v1/messages?key=x", "/v1/messages?beta=true&x=y",
        "/v1/messages#x", "/v1/messages;x", "http://127.0.0.1/v1/messages", "http://evil.example/v1/messages", "*", "/",
        "/v1/messages?beta=true?x", "/V1/messages", "/v1/models/../files", "/v1/models/..", "\\v1\\messages",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_other_targets_do_not_pass_the_relay(world: RelayWorld, method: str, target: str) -> None:
    lines = (f"{method} {target} HTTP/1.1", "Host: r", "Connection: close", "Content-Type: application/json")
    body = BODY if method == "POST" else b""
    answer = await world.raw(head(world, *lines, f"Content-Length: {len(body)}") + body)
    assert answer.split(b" ", 2)[1] in {b"400", b"403", b"404"}
    assert not world.upstream.asked


SMUGGLED = {
    "two hosts": "POST /v1/messages HTTP/1.1\nHost: r\nHost: s\nContent-Length: {n}",
    "two lengths": "POST /v1/messages HTTP/1.1\nHost: r\nContent-Length: {n}\nContent-Length: 0",
    "a list of lengths": "POST /v1/messages HTTP/1.1\nHost: r\nContent-Length: {n}, {n}",
    "a length and chunks": "POST /v1/messages HTTP/1.1\nHost: r\nContent-Length: {n}\nTransfer-Encoding: chunked",
    "odd chunks": "POST /v1/messages HTTP/1.1\nHost: r\nTransfer-Encoding: xchunked",
    "two codings": "POST /v1/messages HTTP/1.1\nHost: r\nTransfer-Encoding: chunked\nTransfer-Encoding: identity",
    "a negative length": "POST /v1/messages HTTP/1.1\nHost: r\nContent-Length: -1",
    "a folded header": "POST /v1/messages HTTP/1.1\nHost: r\nX: y\n z\nContent-Length: {n}",
    "a space before a colon": "POST /v1/messages HTTP/1.1\nHost: r\nContent-Length : {n}",
    "compressed": "POST /v1/messages HTTP/1.1\nHost: r\nContent-Encoding: gzip\nContent-Length: {n}",
    "another type": "POST /v1/messages HTTP/1.1\nHost: r\nContent-Type: multipart/form-data\nContent-Length: {n}",
    "a tunnel": "CONNECT evil.example:443 HTTP/1.1\nHost: evil.example",
    "a web socket": "GET /v1/models HTTP/1.1\nHost: r\nUpgrade: websocket\nConnection: Upgrade",
    "http/2": "PRI * HTTP/2.0\n",
    "a trace": "TRACE /v1/models HTTP/1.1\nHost: r",
    "another method": "PUT /v1/messages HTTP/1.1\nHost: r\nContent-Length: {n}",
    "a body of a GET": "GET /v1/models HTTP/1.1\nHost: r\nContent-Length: {n}",
}  # fmt: skip


@pytest.mark.parametrize("request_head", SMUGGLED.values(), ids=SMUGGLED)
async def test_ambiguous_requests_are_refused(world: RelayWorld, request_head: str) -> None:
    lines = request_head.format(n=len(BODY)).split("\n")
    kind = [] if "Content-Type" in request_head else ["Content-Type: application/json"]
    answer = await world.raw(head(world, *lines, *kind, "Connection: close") + BODY)
    assert b" 200 " not in answer.split(b"\r\n")[0]
    assert not world.upstream.asked


async def test_a_pipelined_request_is_checked_like_the_first(world: RelayWorld) -> None:
    kind = "Content-Type: application/json"
    first = head(world, "POST /v1/messages HTTP/1.1", "Host: r", kind, f"Content-Length: {len(BODY)}") + BODY
    second = head(world, "POST /v1/files HTTP/1.1", "Host: r", "Content-Length: 0", "Connection: close")
    answer = await world.raw(first + second)
    assert [line.split(b" ")[1] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1")] == [b"200", b"403"]
    assert len(world.upstream.asked) == 1


async def test_an_endless_body_is_cut_off(world: RelayWorld) -> None:
    async def endless() -> AsyncIterator[bytes]:
        piece = b" " * (1 << 20)
        for _ in range(LARGEST_REQUEST // len(piece) + 2):
            yield piece

    headers = {"x-api-key": world.run.token, "Content-Type": "application/json"}
    try:
        async with world.post(data=endless(), headers=headers) as r:
            assert r.status == 413
    except aiohttp.ClientError:
        pass  # it was closed while the rest was being sent
    assert world.refused == ["its model's API (a request that is too large)"]
    assert not world.upstream.asked


async def test_incomplete_and_malformed_requests_reach_nobody(world: RelayWorld) -> None:
    _, writer = await asyncio.open_unix_connection(world.run.socket)
    writer.write(head(world, "POST /v1/messages HTTP/1.1", "Host: r", "Content-Length: 1000")[:-2])
    writer.write_eof()
    assert b"200" not in await world.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n")
    writer.close()
    assert not world.upstream.asked


async def test_another_run_does_not_accept_this_runs_token(world: RelayWorld, tmp_path: Path) -> None:
    async with relay_world() as other, other.post(json=ASKED, headers={"x-api-key": world.run.token}) as r:
        assert r.status == 401
        assert world.run.token != other.run.token
