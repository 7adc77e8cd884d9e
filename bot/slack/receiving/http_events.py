"""Receives over HTTP: the address that Slack sends signed requests to, and a page for health checks."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from pydantic import SecretStr
from slack_bolt.adapter.aiohttp import to_aiohttp_response

from bot.slack.app import SlackApp
from bot.slack.receiving.signature import is_signed

logger = logging.getLogger(__name__)

EVENTS_PATH, HEALTH_PATH = "/slack/events", "/health"
MAX_BODY = 1_000_000

Health = Callable[[], Mapping[str, Any]]


def _well() -> Mapping[str, Any]:
    return {"ok": True}


class HttpReceiver:
    """Serves `/slack/events` and `/health` on `host` and `port` (0: any free one; see `port` after start).

    `health` is what /health answers with, as JSON; where its "ok" is not true, with status 503.
    """

    def __init__(
        self,
        app: SlackApp,
        signing_secret: SecretStr,
        *,
        host: str,
        port: int,
        health: Health = _well,
        at_once: int = 64,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._app = app
        self._signing_secret = signing_secret
        self._host = host
        self._port = port
        self._health = health
        self._at_once = asyncio.Semaphore(at_once)
        self._now = now
        self._runner: web.AppRunner | None = None
        self._work: set[asyncio.Future[web.Response]] = set()

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self._runner is None or not self._runner.addresses:
            return self._port
        return int(self._runner.addresses[0][1])

    async def start(self) -> None:
        """Listens. Raises OSError where the port is taken."""
        served = web.Application(client_max_size=MAX_BODY)
        served.router.add_post(EVENTS_PATH, self._event)
        served.router.add_get(HEALTH_PATH, self._healthy)
        self._runner = web.AppRunner(served, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        logger.info("listening for Slack on port %d", self.port)

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - one deadline for all that is in flight
        """Takes nothing new, and finishes what was begun."""
        if self._runner is None:
            return
        until = asyncio.get_running_loop().time() + timeout
        await asyncio.gather(*(site.stop() for site in self._runner.sites))
        if self._work:
            await asyncio.wait(set(self._work), timeout=timeout)
        await self._runner.cleanup()
        await self._app.drain(max(until - asyncio.get_running_loop().time(), 0.0))

    async def _event(self, request: web.Request) -> web.Response:
        work = asyncio.ensure_future(self._answer(request))
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        return await work

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            body = await request.read()
        except web.RequestPayloadError:
            raise web.HTTPBadRequest(text="not what its headers say") from None
        headers = request.headers
        timestamp, signature = headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "")
        secret = self._signing_secret.get_secret_value()
        if not is_signed(secret, timestamp, signature, body, now=self._now()):
            logger.warning("a request that Slack did not sign, or signed over 5 minutes ago, is turned away")
            raise web.HTTPUnauthorized(text="not signed by Slack")
        try:
            text = body.decode()
        except UnicodeDecodeError:
            raise web.HTTPBadRequest(text="not UTF-8") from None
        async with self._at_once:
            answer = await self._app.take_request(text, headers.get("Content-Type", ""))
        return await to_aiohttp_response(answer)

    async def _healthy(self, _: web.Request) -> web.Response:
        state = dict(self._health())
        return web.json_response(state, status=200 if state.get("ok") is True else 503)
