"""A model's API on a loopback port that does as a test says, and requests to the relay in front of it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from bot.jobserver.egress.model_api import ModelApi
from bot.jobserver.egress.model_relay import RelayedModel, model_relay
from bot.jobserver.egress.providers import ANTHROPIC, ModelLogin

KEY = "planted-key-of-the-model"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def broken_off(request: web.Request) -> web.StreamResponse:
    """An answer whose connection breaks after its beginning."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(b'data: {"type": "content_block_start"}\n\n')
    assert request.transport is not None
    request.transport.abort()
    return response


@dataclass
class Upstream:
    """The API. `asked` are the received requests, with their bodies."""

    url: str = ""
    asked: list[tuple[web.Request, bytes]] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """An answer was given up."""
    answer: Answer | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request, await request.read()))
        try:
            return await self.answer(request) if self.answer else web.json_response({"ok": True})
        except asyncio.CancelledError:
            self.gone.set()
            raise


@dataclass
class RelayWorld:
    """A run's relay, and a client for it."""

    upstream: Upstream
    run: RelayedModel
    session: aiohttp.ClientSession
    refused: list[str]

    async def raw(self, data: bytes) -> bytes:
        """Sends raw bytes, and returns everything received until the relay closes."""
        reader, writer = await asyncio.open_unix_connection(self.run.socket)
        writer.write(data)
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
        return answer

    def post(self, path: str = "/v1/messages", **more: Any) -> Any:
        more.setdefault("headers", {"x-api-key": self.run.token})
        return self.session.post(f"http://relay{path}", **more)


@asynccontextmanager
async def upstream_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[Upstream]:
    """With `tls`, `url` names it by localhost."""
    upstream = Upstream()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", upstream.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        port = runner.addresses[0][1]
        upstream.url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
        yield upstream
    finally:
        await runner.cleanup()


@asynccontextmanager
async def relay_world(
    api: ModelApi = ANTHROPIC,
    *,
    model: str | None = None,
    choices: tuple[str, ...] = (),
    key: Callable[[], str] = lambda: KEY,
    header: str = ANTHROPIC.header,
    address: str | None = None,
) -> AsyncIterator[RelayWorld]:
    refused: list[str] = []
    async with upstream_server() as upstream:
        url = address or f"{upstream.url}{api.prefix}"
        login = ModelLogin(api, header, "KEY", lambda _: key(), url, model, choices)
        async with (
            model_relay(login, refused.append) as run,
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(run.socket))) as session,
        ):
            yield RelayWorld(upstream, run, session, refused)
