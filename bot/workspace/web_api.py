"""The Web API over HTTP: who calls, what is allowed, what went wrong. The methods are in ``methods/``."""

from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from bot.workspace.app_config import AppConfig
from bot.workspace.arguments import Arguments
from bot.workspace.call import Call, Method
from bot.workspace.errors import SlackError
from bot.workspace.faults import CallFault, Faults
from bot.workspace.methods import METHODS
from bot.workspace.models import Json
from bot.workspace.rate_limits import RateLimits
from bot.workspace.rendering import Rendering
from bot.workspace.requests import read_arguments
from bot.workspace.state import State

KEPT_CALLS = 100_000
_LATE_FAULTS = frozenset({"drop", "status"})


@dataclass
class ApiCall:
    """The record of one call.

    Args:
        method: Such as ``chat.postMessage``.
        args: Its arguments, without the token.
        at: When it came, in seconds.
        applied: Whether it was carried out, whatever was then answered.
        error: Slack's code if it was refused; None if not.
        answer: What was, or would have been, answered.
    """

    method: str
    args: Json
    at: float
    applied: bool = False
    error: str | None = None
    answer: Json = field(default_factory=dict)


@dataclass
class Tokens:
    """The app's tokens, and what has become of them. ``refusal`` is Slack's code once they are no longer good."""

    bot: str = field(repr=False)
    app: str = field(repr=False)
    refusal: str | None = None

    def check(self, token: str, *, app_token: bool) -> None:
        """Raises: SlackError with Slack's code for a token that is missing, wrong, revoked or of the wrong type."""
        if not token:
            raise SlackError("not_authed")
        if token not in {self.bot, self.app}:
            raise SlackError("invalid_auth")
        if self.refusal:
            raise SlackError(self.refusal)
        if (token == self.app) != app_token:
            raise SlackError("not_allowed_token_type")


class WebApi:
    """Answers ``/api/<method>``."""

    def __init__(
        self,
        state: State,
        app: AppConfig,
        rendering: Rendering,
        tokens: Tokens,
        faults: Faults,
        *,
        origin: Callable[[], str],
        open_socket_url: Callable[[], str],
        changed: Callable[[], None],
    ) -> None:
        self.calls: list[ApiCall] = []
        self.rate_limits: RateLimits | None = None
        self._state = state
        self._app = app
        self._rendering = rendering
        self._tokens = tokens
        self._faults = faults
        self._origin = origin
        self._open_socket_url = open_socket_url
        self._changed = changed

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request: Slack says 200 to nearly everything and puts what went wrong into the body."""
        name = request.match_info["method"]
        try:
            token, arguments = await read_arguments(request)
        except SlackError as error:
            return web.json_response(error.answer())
        except web.HTTPRequestEntityTooLarge:
            return web.json_response({"ok": False, "error": "request_too_large"}, status=413)
        record = ApiCall(name, arguments.as_dict(), self._state.now())
        self.calls.append(record)
        if len(self.calls) > KEPT_CALLS:
            del self.calls[: KEPT_CALLS // 2]
        self._changed()
        try:
            return await self._answer(request, record, token, arguments)
        finally:
            self._changed()

    async def _answer(
        self, request: web.Request, record: ApiCall, token: str, arguments: Arguments
    ) -> web.StreamResponse:
        fault = self._faults.take_call(record.method, self._channels(arguments))
        if fault and fault.kind == "delay":
            if not fault.applied:
                await self._faults.hold(fault.seconds)
        elif fault and not (fault.kind in _LATE_FAULTS and fault.applied):
            return self._faulty(request, record, fault)
        method, answer = self._carry_out(record, token, arguments)
        if fault and fault.kind in _LATE_FAULTS:
            return self._faulty(request, record, fault)
        if fault and fault.kind == "delay" and fault.applied:
            await self._faults.hold(fault.seconds)
        if record.error == "ratelimited":
            return _rate_limited(answer.pop("retry_after"))
        return web.json_response(answer, headers=self._scope_headers(method))

    def _carry_out(self, record: ApiCall, token: str, arguments: Arguments) -> tuple[Method | None, Json]:
        method = METHODS.get(record.method)
        if method is None:
            record.error = "unknown_method"
            record.answer = {"ok": False, "error": record.error, "req_method": record.method}
            return None, record.answer
        try:
            record.answer = {"ok": True, **self._permitted(record, method, token, arguments)}
            record.applied = True
        except SlackError as error:
            record.error, record.answer = error.code, error.answer()
        return method, record.answer

    def _permitted(self, record: ApiCall, method: Method, token: str, arguments: Arguments) -> Json:
        self._tokens.check(token, app_token=method.app_token)
        call = Call(self._state, self._app, self._rendering, arguments, self._origin(), self._open_socket_url)
        if method.scope:
            call.need(method.scope)
        self._keep_to_the_rate(record.method, method, arguments)
        return method.answer(call)

    def _keep_to_the_rate(self, name: str, method: Method, arguments: Arguments) -> None:
        if self.rate_limits is None:
            return
        channel = str(arguments.as_dict().get("channel", ""))
        wait = self.rate_limits.wait_for(name, channel, method.per_minute)
        if wait is not None:
            raise SlackError("ratelimited", detail={"retry_after": wait})

    def _channels(self, arguments: Arguments) -> frozenset[str]:
        """What a fault may call this call's channel: its id and its name."""
        given = arguments.as_dict().get("channel")
        if not isinstance(given, str):
            return frozenset()
        channel = self._state.find_channel(given)
        return frozenset({given, channel.id, channel.name} if channel else {given})

    def _faulty(self, request: web.Request, record: ApiCall, fault: CallFault) -> web.StreamResponse:
        match fault.kind:
            case "drop":
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            case "ratelimited":
                record.error = "ratelimited"
                return _rate_limited(int(fault.seconds))
            case "error":
                record.error = fault.code
                return web.json_response(SlackError(fault.code).answer())
            case _:
                record.error = record.error or "internal_error"
                return web.json_response({"ok": False, "error": "internal_error"}, status=fault.status)

    def _scope_headers(self, method: Method | None) -> dict[str, str]:
        headers = {"X-OAuth-Scopes": ",".join(sorted(self._app.scopes)), "Cache-Control": "no-store"}
        if method and method.scope:
            headers["X-Accepted-OAuth-Scopes"] = method.scope
        return headers


def _rate_limited(seconds: int) -> web.Response:
    body = {"ok": False, "error": "ratelimited"}
    return web.json_response(body, status=429, headers={"Retry-After": str(seconds)})
