"""Receives over HTTP: serves the address for Slack's signed requests, and the pages for health checks.

Slack signs a request by HMAC-SHA256 of `v0:<timestamp>:<body>` (docs.slack.dev, "Verifying requests"). Bolt's own check
answers 500 to headers that are not numbers or not ASCII, and logs the bodies it turns away.
"""

import asyncio
import hashlib
import hmac
import logging
import re
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response

from bot.domain.findings import LastTime
from bot.domain.gaps import Listening
from bot.runtime.http.server import HttpServer, mark_authenticated
from bot.runtime.logging import ThrottledLogger
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.tasks import BackgroundTasks
from bot.slack.receiving.slack_app import SlackApp

logger = logging.getLogger(__name__)

MAX_AGE = 300.0
"""Seconds between Slack's clock and ours; an older request is a replay."""
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")


def may_be_signed(timestamp: str, signature: str, *, now: float) -> bool:
    """Returns whether the headers are recent (MAX_AGE) and well-formed. It takes no body, so that the body of a request
    that cannot be Slack's is never read.
    """
    is_of_form = _TIMESTAMP.fullmatch(timestamp) and _SIGNATURE.fullmatch(signature)
    return bool(is_of_form) and abs(now - int(timestamp)) <= MAX_AGE


def is_signed(secret: str, timestamp: str, signature: str, body: bytes, *, now: float) -> bool:
    """Returns whether Slack signed this body recently (MAX_AGE). Never raises; no body passes with an empty secret."""
    if not secret or not may_be_signed(timestamp, signature, now=now):
        return False
    return hmac.compare_digest(signature_of(secret, timestamp, body), signature.encode("ascii"))


def signature_of(secret: str, timestamp: str, body: bytes) -> bytes:
    """Returns the signature that Slack puts on a body."""
    signed = hmac.new(secret.encode(), b"v0:" + timestamp.encode("ascii") + b":", hashlib.sha256)
    signed.update(body)
    return b"v0=" + signed.hexdigest().encode("ascii")


EVENTS_PATH = "/slack/events"
MAX_BODY = 3 << 20
"""Bytes. The longest is the edit of a message of 40,000 characters (Slack's limit), which contains it four times (as
text and as blocks, after and before) with up to 12 bytes for a character.
"""
_REPEATED_FOR = 60.0
"""Seconds after which Slack surely has tried to deliver an event twice, and then tries twice again."""


@dataclass(eq=False)
class HttpReceiver:
    """Serves `/slack/events` and `pages`, for health checks, on the socket that `listen` returns. `note` gets requests
    with a wrong signature.
    """

    app: SlackApp
    signing_secret: RotatingSecret
    _: KW_ONLY
    listen: Callable[[], socket.socket]
    pages: Sequence[web.RouteDef] = ()
    note: Callable[[LastTime], None] = lambda _: None
    _server: HttpServer | None = field(default=None, init=False)
    _throttled_log: ThrottledLogger = field(default_factory=lambda: ThrottledLogger(logger), init=False)
    _began: float = field(default_factory=time.monotonic, init=False)
    _requests: BackgroundTasks = field(default_factory=lambda: BackgroundTasks(expected=Exception), init=False)
    """The server, which awaits each, answers and logs its exception."""

    def listening(self) -> Listening | None:
        """Returns since when it listens; None before that."""
        if self._server is None:
            return None
        return Listening(self._began - time.monotonic(), 0.0, repeated_for=_REPEATED_FOR)

    @property
    def port(self) -> int:
        """The port it listens on; 0 if it does not listen."""
        return 0 if self._server is None else self._server.port

    async def start(self) -> None:
        """Listens. Raises what `listen` does."""
        web_app = web.Application(client_max_size=MAX_BODY)
        web_app.router.add_post(EVENTS_PATH, self._serve)
        web_app.router.add_routes(self.pages)
        self._server = HttpServer(web_app)
        await self._server.start(self.listen())
        self._began = time.monotonic()
        logger.info("listening for Slack on port %d", self.port)

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - one deadline for all that is in flight
        """Accepts no more requests, and finishes those that have begun."""
        if self._server is None:
            return
        until = asyncio.get_running_loop().time() + timeout
        self._server.stop_listening()
        await self._requests.drain(timeout)
        await self._server.stop()
        await self.app.drain(max(until - asyncio.get_running_loop().time(), 0.0))

    async def _serve(self, request: web.Request) -> web.Response:
        return await self._requests.spawn(self._respond(request), name="answering Slack")

    async def _respond(self, request: web.Request) -> web.Response:
        self._check_head(request)
        try:
            body = await request.read()
        except web.RequestPayloadError:
            raise web.HTTPBadRequest(text="not what its headers say") from None
        if not self._is_signed(request, body):
            self.note(LastTime.BAD_SIGNATURE)
            raise self._not_signed()
        mark_authenticated(request)
        try:
            text = body.decode()
        except UnicodeDecodeError:
            raise web.HTTPBadRequest(text="not UTF-8") from None
        response = await self.app.handle_http_body(text, request.headers.get("Content-Type", ""))
        return await to_aiohttp_response(response)

    def _is_signed(self, request: web.Request, body: bytes) -> bool:
        """Returns whether Slack signed the request with a current secret. All of them are tried, so that the time that
        it takes does not tell which one it was.
        """
        now, headers = time.time(), _signature(request)
        matches = [is_signed(secret, *headers, body, now=now) for secret in self.signing_secret.values]
        return any(matches)

    def _check_head(self, request: web.Request) -> None:
        """Raises HTTPException if the headers alone show that a request is not Slack's. No more of it is then read than
        it takes to close the connection.
        """
        refused: web.HTTPException | None = None
        if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            self._throttled_log.warning("a compressed request is turned away: Slack sends none")
            refused = web.HTTPUnsupportedMediaType(text="compressed")
        elif not may_be_signed(*_signature(request), now=time.time()):
            refused = self._not_signed()
        elif (announced := request.content_length or 0) > MAX_BODY:
            refused = web.HTTPRequestEntityTooLarge(MAX_BODY, announced)
        if refused is not None:
            refused.force_close()
            raise refused

    def _not_signed(self) -> web.HTTPException:
        self._throttled_log.warning("a request that Slack did not sign, or signed over 5 minutes ago, is turned away")
        return web.HTTPUnauthorized(text="not signed by Slack")


def _signature(request: web.Request) -> tuple[str, str]:
    headers = request.headers
    return headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "")
