"""The model relay: the only way from a sandbox to its agent's model. It adds the key.

It serves one run on a Unix socket, requires the run's token, and connects to only one address.
"""

import asyncio
import re
import secrets
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Handler
from yarl import URL

from bot.errors import ConfigError
from bot.jobserver.egress import model_api
from bot.jobserver.egress.model_answer import ModelAnswer
from bot.jobserver.egress.providers import ModelLogin, login_of
from bot.jobserver.egress.request_rules import RELAY, RefusedRequest
from bot.jobserver.egress.upstream_proxy import proxy_for
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.interface import Door, Program
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import OPEN, SandboxSettings
from bot.jobserver.settings.server import TokenBudget
from bot.jobserver.usage import Spent
from bot.runtime.http.bodies import read_up_to
from bot.runtime.http.server import HttpServer

LARGEST_REQUEST = 32 << 20
"""Bytes; Anthropic's own maximum."""
_MOST_HELD = 2 * LARGEST_REQUEST
"""Bytes of all pending requests of a run."""
_MOST_CONNECTIONS = 64
_REQUEST_S = 60.0
_CONNECT_S = 30.0
_LARGEST_ERROR = 1 << 18
_HAS_TOOLS = re.compile(rb'"tools"\s*:\s*\[\s*\{')
"""Within a JSON string, the quotes would be escaped."""
_COUNTS = re.compile(r"count_?tokens", re.IGNORECASE)
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
"""No total limit: a model may think silently for minutes, and the run has its own limit."""
_PORT = 8701
"""Inside the sandbox, whose own loopback interface has nothing else."""
RELAY_ADDRESS = f"http://127.0.0.1:{_PORT}"
MODEL_URL, MODEL_KEY = "{model_url}", "{model_key}"
"""Placeholders for the model's address and key in settings."""
_NOT_COUNTED = (
    "PAGEHAND_JOBSERVER_BUDGET counts what the model relay passes on, and the relay is not in use: it needs "
    "bubblewrap, EGRESS other than open, and a key that the relay supports; or leave the budget out"
)


def in_words(error: Exception) -> str:
    """Describes an error without the proxy's address, which may contain a password."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as why):
            fault = why.verify_message.rstrip(".")
            return f"its certificate is not trusted here ({fault}); SSL_CERT_FILE can name a CA of your own"
        case aiohttp.ClientProxyConnectionError():
            return "this server's own proxy does not respond"
        case aiohttp.ClientHttpProxyError():
            return f"this server's own proxy does not connect to it ({error.status})"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return type(error).__name__


@dataclass
class RelayedModel:
    """A run's relay. `socket` is the relay's socket, `token` the run's key for it, and `key` the real key.

    `tell` is called with the tokens of each response, at its end. `last` is the answer to the request that began last,
    of those in which the agent offers tools: others, such as for a title, are beside its work, and a subagent's are
    followed by the agent's own.
    """

    login: ModelLogin
    socket: Path
    token: str = field(repr=False)
    key: str = field(repr=False)
    tell: Callable[[Spent], None]
    last: ModelAnswer | None = None

    @property
    def address(self) -> str:
        """The model's address inside the sandbox, as the libraries of its API expect it."""
        return f"{RELAY_ADDRESS}{self.login.api.suffix}"

    @property
    def variables(self) -> dict[str, str]:
        return self.login.variables(self.address, self.token)

    @property
    def doors(self) -> tuple[Door, ...]:
        return (Door(_PORT, self.socket),)

    @property
    def fault(self) -> str | None:
        """Why the model's last answer to the agent's own work is not a complete one."""
        return self.last.fault if self.last else None

    def given_to(self, program: Program) -> Program:
        """Returns a program that knows the relay's address, but not the real key."""
        kept = {name: value for name, value in program.environment.items() if self.key not in value}
        arguments = tuple(word.replace(MODEL_URL, self.address) for word in program.arguments)
        return Program(arguments, {**kept, **self.variables}, (*program.doors, *self.doors))


@asynccontextmanager
async def model_relay(
    login: ModelLogin, tell_refused: Callable[[str], None], tell: Callable[[Spent], None] = lambda _: None
) -> AsyncIterator[RelayedModel]:
    """Serves one run; pending requests end with it. The callables are told what the relay refuses and counts.

    Raises:
        EditError: it cannot be started.
    """
    async with AsyncExitStack() as stack:
        scratch = tempfile.TemporaryDirectory(prefix="pagehand-model-", ignore_cleanup_errors=True)
        try:
            place = Path(stack.enter_context(scratch), "socket")
            run = RelayedModel(login, place, secrets.token_urlsafe(24), login.key(), tell)
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(place))
            listener.listen(_MOST_CONNECTIONS)
        except ConfigError as error:
            raise EditError(str(error)) from None
        except OSError as error:
            raise EditError(f"its model's relay cannot be started: {error.strerror or error}") from error
        connector = aiohttp.TCPConnector(limit=_MOST_CONNECTIONS)
        session = aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT, cookie_jar=aiohttp.DummyCookieJar())
        policy = model_api.RequestPolicy(login.api, login.model, login.choices)
        relay = _Relay(run, await stack.enter_async_context(session), tell_refused, policy)
        server = HttpServer(
            web.Application(middlewares=[relay.answer]),
            request_seconds=_REQUEST_S,
            most_connections=_MOST_CONNECTIONS,
            most_pending_bytes=_MOST_HELD,
            handler_cancellation=True,
        )
        await server.start(listener)
        stack.push_async_callback(server.stop)
        yield run


@dataclass(frozen=True)
class _Relay:
    """Handles every request of a run, whatever its method and target."""

    run: RelayedModel
    session: aiohttp.ClientSession
    tell_refused: Callable[[str], None]
    policy: model_api.RequestPolicy

    @web.middleware
    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:  # noqa: ARG002 - by name
        if not model_api.holds_token(request.headers, self.run.token, self.run.login.header):
            return self._refuse(request, RefusedRequest("a wrong token", "This is not the run's key."), status=401)
        policy = self.policy
        route = policy.route(request.method, request.raw_path, request.headers)
        if isinstance(route, RefusedRequest):
            return self._refuse(request, route)
        body = await read_up_to(LARGEST_REQUEST, request.content)
        if len(body) > LARGEST_REQUEST:
            words = f"{RELAY} accepts at most {LARGEST_REQUEST} bytes."
            return self._refuse(request, RefusedRequest("a request that is too large", words), status=413)
        refused = await asyncio.to_thread(policy.body_refusal, route, body)
        if refused is not None:
            return self._refuse(request, refused)
        return await self._relayed(request, route, body)

    def _refuse(self, request: web.Request, refused: RefusedRequest, *, status: int = 403) -> web.Response:
        self.tell_refused(f"its model's API ({refused.what})")
        return self._error(request, status, refused.message)

    def _error(self, request: web.Request, status: int, words: str) -> web.Response:
        response = web.json_response(model_api.error_body(status, words), status=status)
        if request.can_read_body and not request.content.at_eof():
            response.force_close()
        return response

    async def _relayed(self, request: web.Request, route: model_api.Route, body: bytes) -> web.StreamResponse:
        login = self.run.login
        seen = ModelAnswer(login.api)
        if _HAS_TOOLS.search(body) and not _COUNTS.search(route.target):
            self.run.last = seen
        try:
            key = login.key()
            headers = model_api.request_headers(request.headers)
            headers.update({**login.headers, **model_api.with_key(login.header, key), "Accept-Encoding": "identity"})
            async with self.session.request(
                request.method, URL(login.upstream + route.target, encoded=True), headers=headers, data=body or None,
                allow_redirects=False, proxy=proxy_for(login.upstream),
            ) as answer:  # fmt: skip
                return await self._passed_on(request, answer, key, seen)
        except ConfigError as error:
            seen.fault = f"{RELAY} has no key: {error}"
            return self._error(request, 502, seen.fault)
        except (aiohttp.ClientError, TimeoutError) as error:
            words = f"{RELAY} cannot reach {urlsplit(login.upstream).hostname}: {in_words(error)}"
            if request.transport is not None and request.writer.output_size:
                request.transport.abort()  # a truncated response must not look complete
                if not isinstance(error, aiohttp.ClientConnectionResetError):  # otherwise the agent closed it
                    seen.cut()
            else:
                seen.fault = words
            return self._error(request, 502, words)

    async def _passed_on(
        self, request: web.Request, answer: aiohttp.ClientResponse, key: str, seen: ModelAnswer
    ) -> web.StreamResponse:
        if 300 <= answer.status < 400:  # noqa: PLR2004 - redirects
            return self._error(request, 502, "The model's address redirects to another one: set that one instead.")
        headers = model_api.response_headers(answer.headers)
        if answer.status >= 400:  # noqa: PLR2004 - errors
            told = (await read_up_to(_LARGEST_ERROR, answer.content)).replace(key.encode(), b"[secret]")
            seen.refused(answer.status, told)
            return web.Response(status=answer.status, headers=headers, body=told)
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        try:
            async for piece in answer.content.iter_any():
                seen.feed(piece)
                await response.write(piece)
            seen.finish(has_events=answer.content_type == "text/event-stream")
            await response.write_eof()
        finally:
            self.run.tell(seen.tokens)
        return response


def relays_models(settings: SandboxSettings) -> bool:
    """Whether programs reach their model by the relay, having no network of their own."""
    return settings.sandbox != "none" and settings.egress != OPEN


def check_budget(settings: JobServerSettings, login: ModelLogin | None) -> None:
    """Raises JobServerError for a budget without a relay that counts tokens."""
    if settings.budget != TokenBudget() and login is None:
        raise JobServerError(_NOT_COUNTED)


def relayed_login(settings: JobServerSettings) -> ModelLogin | None:
    """Returns the login by the MODEL_ settings, if it is the relay's, for a program that is not a named agent.

    Raises:
        JobServerError: its address, or the proxy on the way there, cannot be used.
    """
    login = login_of(settings, settings.model)
    if login is None or not relays_models(settings):
        return None
    login.check_address()
    return login
