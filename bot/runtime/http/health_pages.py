"""Serves health checks and metrics over HTTP, for load balancers, hosting platforms and operators."""

import hmac
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from bot.errors import CannotStart
from bot.runtime.health import ComponentStatus, Health
from bot.runtime.http.server import HttpServer, listening_socket
from bot.runtime.rotating_secrets import RotatingSecret

logger = logging.getLogger(__name__)

METRICS_PATH = "/metrics"

Render = Callable[[], Awaitable[bytes]]


def metrics_route(render: Render, token: RotatingSecret | None = None) -> web.RouteDef:
    """Returns the route of the metrics; with a token, only for requests that have it as a bearer token."""

    async def show(request: web.Request) -> web.Response:
        if token is not None and not _may_read(request, token):
            return web.Response(status=401, text="send Authorization: Bearer <token>", headers=_CHALLENGE)
        return web.Response(body=await render(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    return web.get(METRICS_PATH, show)


_CHALLENGE = {"WWW-Authenticate": "Bearer"}


def _may_read(request: web.Request, token: RotatingSecret) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    bearer = given.strip().encode(errors="replace")
    matches = [hmac.compare_digest(bearer, each.encode()) for each in token.values]  # all: the time tells nothing
    return scheme.lower() == "bearer" and any(matches)


Report = Callable[[], Mapping[str, object]]


def health_routes(health: Health) -> Sequence[web.RouteDef]:
    """Returns the routes of the health checks, which any server can add. Each responds with 200, or 503 if not ok.

    `/health/live`: the process and its event loop work; restart a process that does not respond.
    `/health/ready`: Slack's requests arrive and can be recorded.
    `/health`: the full report.
    """
    pages: tuple[tuple[str, Report], ...] = (
        ("/health", health.report),
        ("/health/live", lambda: {"ok": True}),
        ("/health/ready", health.readiness),
    )
    return [web.get(path, _page(report)) for path, report in pages]


class HealthPage:
    """Serves the health checks, and `more` pages, on a port of their own: on the socket that `listen` returns."""

    def __init__(self, health: Health, listen: Callable[[], socket.socket], more: Sequence[web.RouteDef] = ()) -> None:
        self._health = health
        self._listen = listen
        self._more = more
        self._server: HttpServer | None = None

    async def start(self) -> None:
        """Starts to listen. Raises what `listen` does."""
        served = web.Application(client_max_size=1024)
        served.router.add_routes([*health_routes(self._health), *self._more])
        self._server = HttpServer(served)
        await self._server.start(self._listen())

    async def stop(self) -> None:
        """Stops listening."""
        if self._server is not None:
            await self._server.stop()


def _page(report: Report) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def show(_: web.Request) -> web.Response:
        shown = report()
        return web.json_response(shown, status=200 if shown["ok"] else 503)

    return show


Listen = Callable[[str, int], socket.socket]
"""Returns a listening socket for a host and port."""


def listen_on(host: str, port: int) -> socket.socket:
    """Returns a listening socket. Raises CannotStart if the address cannot be used."""
    try:
        return listening_socket(host, port)
    except OSError as error:
        raise CannotStart(f"it {error.strerror or error}. Choose another port or address.") from None


@asynccontextmanager
async def early_health(addresses: Iterable[tuple[str, int]]) -> AsyncIterator[Listen]:
    """Answers 200 to `/health/live`, 503 to the other health checks, and nothing else, at these hosts and ports.

    Yields the function by which the servers that take over get their sockets. They listen before the context ends, so
    that no request is refused in between.
    """
    began, early = time.monotonic(), dict[tuple[str, int], socket.socket]()

    def starting() -> Iterator[ComponentStatus]:
        seconds, reason = time.monotonic() - began, "the database or Slack has not answered yet"
        yield ComponentStatus("start", seconds, reason, critical=True, grace_seconds=0.0)

    def taken_over(host: str, port: int) -> socket.socket:
        return early[host, port].dup() if (host, port) in early else listen_on(host, port)

    async with AsyncExitStack() as stack:
        for address in addresses:
            early[address] = stack.enter_context(listen_on(*address))
            page = HealthPage(Health(starting), early[address].dup, [web.route("*", "/{_:.*}", _no_answer)])
            stack.push_async_callback(page.stop)
            await page.start()
            logger.info("health checks are served on %s, port %d", *address)
        yield taken_over


async def _no_answer(request: web.Request) -> web.Response:
    """Closes the connection, as if nothing listened: Slack then sends its request again, and a refusal would be one."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
