"""Serves metrics in Prometheus' text format, to whom they may be shown."""

import hmac
from collections.abc import Awaitable, Callable

from aiohttp import web

from bot.runtime.rotating_secrets import RotatingSecret

METRICS_PATH = "/metrics"
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Render = Callable[[], Awaitable[bytes]]


def metrics_route(render: Render, token: RotatingSecret | None = None) -> web.RouteDef:
    """Returns the route of the metrics; with a token, only for requests that have it as a bearer token."""

    async def show(request: web.Request) -> web.Response:
        if token is not None and not _may_read(request, token):
            return web.Response(status=401, text="send Authorization: Bearer <token>", headers=_CHALLENGE)
        return web.Response(body=await render(), headers={"Content-Type": _CONTENT_TYPE})

    return web.get(METRICS_PATH, show)


_CHALLENGE = {"WWW-Authenticate": "Bearer"}


def _may_read(request: web.Request, token: RotatingSecret) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    bearer = given.strip().encode(errors="replace")
    matches = [hmac.compare_digest(bearer, each.encode()) for each in token.values]  # all: the time tells nothing
    return scheme.lower() == "bearer" and any(matches)
