"""The model relay: the only way from a sandbox to its agent's model, which puts the key in.

It serves one run on a Unix socket, to whoever knows the run's token, and keeps to one address.
"""

import asyncio
import contextlib
import secrets
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Handler
from yarl import URL

from bot.errors import ConfigError
from bot.jobserver.egress.model_apis import KeyHeader, Route, answered, error_body, holds_token, passed_on, with_key
from bot.jobserver.egress.model_requests import RequestPolicy
from bot.jobserver.egress.model_usage import AnswerUsage, Tokens
from bot.jobserver.egress.refused_requests import RELAY, RefusedRequest
from bot.jobserver.egress.upstream_proxy import proxy_for
from bot.runtime.http.server import HttpServer

LARGEST_REQUEST = 32 << 20
"""Bytes; what Anthropic takes at most."""
_MOST_HELD = 2 * LARGEST_REQUEST
"""Bytes of all requests of a run that are not answered yet."""
_MOST_CONNECTIONS = 64
_REQUEST_S = 60.0
_CONNECT_S = 30.0
_LARGEST_ERROR = 1 << 18
_LONG = 1 << 18
"""Bytes of a body that takes milliseconds to look at."""
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
"""A model may think for minutes without a word: the run's own limit ends that."""


def in_words(error: Exception) -> str:
    """Returns what went wrong: never an address of the proxy's, which may hold a password."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as why):
            fault = why.verify_message.rstrip(".")
            return f"its certificate is not trusted here ({fault}); SSL_CERT_FILE can name a CA of your own"
        case aiohttp.ClientProxyConnectionError():
            return "this server's own proxy does not answer"
        case aiohttp.ClientHttpProxyError():
            return f"this server's own proxy does not connect to it ({error.status})"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return type(error).__name__


@dataclass(frozen=True)
class ModelAccess:
    """How a model is reached: what the relay knows, and the sandbox does not.

    `address` is the API's, with its version, such as `https://api.openai.com/v1`. `key` reads the key anew each time,
    and raises ConfigError where it cannot. `headers` go with every request.
    """

    policy: RequestPolicy
    address: str
    key_header: KeyHeader
    key: Callable[[], str] = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass
class RelayedModel:
    """What a run is given, and what came of it. `socket` leads to the relay, and `token` is its key there."""

    socket: Path
    token: str = field(repr=False)
    requests: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    tell: Callable[[Tokens], None] | None = None
    """Told of the tokens of each answer, at its end."""

    def add(self, tokens: Tokens) -> None:
        self.tokens += tokens
        if self.tell is not None:
            self.tell(tokens)


@contextlib.asynccontextmanager
async def model_relay(access: ModelAccess, tell_refused: Callable[[str], None]) -> AsyncIterator[RelayedModel]:
    """Serves one run; when it ends, so does every request that is under way.

    Raises:
        OSError: no socket can be made.
    """
    with tempfile.TemporaryDirectory(prefix="pagehand-model-", ignore_cleanup_errors=True) as directory:
        run = RelayedModel(Path(directory, "socket"), secrets.token_urlsafe(24))
        connector = aiohttp.TCPConnector(limit=_MOST_CONNECTIONS)
        session = aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT, cookie_jar=aiohttp.DummyCookieJar())
        async with session:
            relay = _Relay(access, run, session, tell_refused)
            server = HttpServer(
                web.Application(middlewares=[relay.answer]),
                request_seconds=_REQUEST_S,
                most_connections=_MOST_CONNECTIONS,
                most_pending_bytes=_MOST_HELD,
                handler_cancellation=True,
            )
            await server.start(_listener(run.socket))
            try:
                yield run
            finally:
                await server.stop()


def _listener(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        listener.listen(_MOST_CONNECTIONS)
    except OSError:
        listener.close()
        raise
    return listener


class _Relay:
    """Answers every request of a run, whatever its method and target."""

    def __init__(
        self,
        access: ModelAccess,
        run: RelayedModel,
        session: aiohttp.ClientSession,
        tell_refused: Callable[[str], None],
    ) -> None:
        self._access = access
        self._run = run
        self._session = session
        self._tell_refused = tell_refused

    @web.middleware
    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:  # noqa: ARG002 - by name
        if not holds_token(request.headers, self._run.token):
            return self._refuse(request, RefusedRequest("a wrong token", "This key is not the run's own."), status=401)
        policy = self._access.policy
        route = policy.route(request.method, request.raw_path, request.headers)
        if isinstance(route, RefusedRequest):
            return self._refuse(request, route)
        body = await _read(request.content, LARGEST_REQUEST)
        if len(body) > LARGEST_REQUEST:
            words = f"{RELAY} takes {LARGEST_REQUEST} bytes at most."
            return self._refuse(request, RefusedRequest("a request that is too large", words), status=413)
        is_long = len(body) > _LONG
        refused = (
            await asyncio.to_thread(policy.body_refusal, route, body) if is_long else policy.body_refusal(route, body)
        )
        if refused is not None:
            return self._refuse(request, refused)
        return await self._relayed(request, route, body)

    def _refuse(self, request: web.Request, refused: RefusedRequest, *, status: int = 403) -> web.Response:
        self._tell_refused(f"its model's API ({refused.what})")
        return self._error(request, status, refused.words)

    def _error(self, request: web.Request, status: int, words: str) -> web.Response:
        response = web.json_response(error_body(self._access.policy.api.dialect, status, words), status=status)
        if request.can_read_body and not request.content.at_eof():
            response.force_close()
        return response

    async def _relayed(self, request: web.Request, route: Route, body: bytes) -> web.StreamResponse:
        access = self._access
        try:
            key = access.key()
            headers = passed_on(request.headers)
            headers.update({**access.headers, **with_key(access.key_header, key), "Accept-Encoding": "identity"})
            async with self._session.request(
                request.method, URL(access.address + route.target, encoded=True), headers=headers, data=body or None,
                allow_redirects=False, proxy=proxy_for(access.address),
            ) as answer:  # fmt: skip
                self._run.requests += 1
                return await self._handed_on(request, answer, key)
        except ConfigError as error:
            return self._error(request, 502, f"{RELAY} has no key: {error}")
        except (aiohttp.ClientError, TimeoutError) as error:
            if request.transport is not None and request.writer.output_size:
                request.transport.abort()  # what was cut off must not look whole
            host = urlsplit(access.address).hostname
            return self._error(request, 502, f"{RELAY} cannot reach {host}: {in_words(error)}")

    async def _handed_on(self, request: web.Request, answer: aiohttp.ClientResponse, key: str) -> web.StreamResponse:
        if 300 <= answer.status < 400:  # noqa: PLR2004 - redirects
            return self._error(request, 502, "The model's address redirects to another one: set that one instead.")
        headers = answered(answer.headers)
        if answer.status >= 400:  # noqa: PLR2004 - errors
            told = (await _read(answer.content, _LARGEST_ERROR)).replace(key.encode(), b"[secret]")
            return web.Response(status=answer.status, headers=headers, body=told)
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        usage = AnswerUsage()
        try:
            async for piece in answer.content.iter_any():
                usage.feed(piece)
                await response.write(piece)
            await response.write_eof()
        finally:
            usage.finish()
            self._run.add(usage.tokens)
        return response


async def _read(content: aiohttp.StreamReader, limit: int) -> bytes:
    """Returns all of a content, or its beginning, which is longer than the limit then."""
    found = bytearray()
    async for piece in content.iter_any():
        found += piece
        if len(found) > limit:
            break
    return bytes(found)
