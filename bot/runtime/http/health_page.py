"""Serves the health checks over HTTP, for load balancers, hosting platforms and operators."""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence

from aiohttp import web

from bot.runtime.health.report import Health
from bot.runtime.http.server import HttpServer

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
