"""The Web API over HTTP: each call is recorded, meets the faults that were injected, and is answered as Slack does."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from aiohttp import web

from bot.workspace.failure_injection import CallFault, Faults
from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.web_api.credentials import Credentials
from bot.workspace.web_api.dispatcher import Dispatcher
from bot.workspace.web_api.method import Method
from bot.workspace.web_api.methods import METHODS
from bot.workspace.web_api.requests import read_arguments
from bot.workspace.wire.arguments import Arguments

MAX_RECORDED_CALLS = 100_000
SOCKET_MODE_SCOPE = "connections:write"
_LATE_FAULTS = frozenset({"drop", "status"})
"""Those that may strike after the call was carried out."""


@dataclass
class CallRecord:
    """The outcome of one call.

    Args:
        method: Such as ``chat.postMessage``.
        args: Its arguments, without the token.
        at: When it came, in seconds.
        applied: Whether it was carried out, whatever was then answered.
        error: Slack's code if it was refused; None if not.
        response: What was, or would have been, answered.
    """

    method: str
    args: Json
    at: float
    applied: bool = False
    error: str | None = None
    response: Json = field(default_factory=dict)


class WebApi:
    """Answers ``/api/<method>`` and keeps a record of the last calls.

    Args:
        dispatcher: Carries the calls out.
        credentials: Whose scopes are told in the headers.
        faults: Which calls are to suffer what.
        notify: Called when a call comes, and when it was answered.
    """

    def __init__(
        self, dispatcher: Dispatcher, credentials: Credentials, faults: Faults, notify: Callable[[], None]
    ) -> None:
        self.calls: list[CallRecord] = []
        self._dispatcher = dispatcher
        self._credentials = credentials
        self._faults = faults
        self._notify = notify

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one request: Slack says 200 to nearly everything and puts what went wrong into the body."""
        try:
            token, arguments = await read_arguments(request)
        except SlackError as error:
            return web.json_response(error.response_body())
        except web.HTTPRequestEntityTooLarge:
            return web.json_response({"ok": False, "error": "request_too_large"}, status=413)
        record = self._record(request.match_info["method"], arguments)
        try:
            return await self._respond(request, record, token, arguments)
        finally:
            self._notify()

    def _record(self, method: str, arguments: Arguments) -> CallRecord:
        record = CallRecord(method, arguments.as_dict(), self._dispatcher.state.now())
        self.calls.append(record)
        if len(self.calls) > MAX_RECORDED_CALLS:
            del self.calls[: MAX_RECORDED_CALLS // 2]
        self._notify()
        return record

    async def _respond(
        self, request: web.Request, record: CallRecord, token: str, arguments: Arguments
    ) -> web.StreamResponse:
        fault = self._faults.take_call_fault(record.method, self._channel_names(arguments))
        if fault and fault.kind == "delay":
            if not fault.applied:
                await self._faults.hold(fault.seconds)
        elif fault and not (fault.kind in _LATE_FAULTS and fault.applied):
            return self._fault_response(request, record, token, fault)
        self._execute(record, token, arguments)
        if fault and fault.kind in _LATE_FAULTS:
            return self._fault_response(request, record, token, fault)
        if fault and fault.kind == "delay" and fault.applied:
            await self._faults.hold(fault.seconds)
        if record.error == "ratelimited":
            return _rate_limited(record.response.pop("retry_after"))
        return web.json_response(record.response, headers=self._headers(METHODS.get(record.method), token))

    def _execute(self, record: CallRecord, token: str, arguments: Arguments) -> None:
        try:
            record.response = {"ok": True, **self._dispatcher.execute(record.method, token, arguments)}
            record.applied = True
        except SlackError as error:
            record.error, record.response = error.code, error.response_body()

    def _channel_names(self, arguments: Arguments) -> frozenset[str]:
        """Returns what a fault may call this call's channel: its id and its name."""
        given = arguments.as_dict().get("channel")
        if not isinstance(given, str):
            return frozenset()
        channel = self._dispatcher.state.find_channel(given)
        return frozenset({given, channel.id, channel.name} if channel else {given})

    def _fault_response(
        self, request: web.Request, record: CallRecord, token: str, fault: CallFault
    ) -> web.StreamResponse:
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
                return self._refusal(record, token, fault.code)
            case _:
                record.error = record.error or "internal_error"
                return web.json_response({"ok": False, "error": "internal_error"}, status=fault.status)

    def _refusal(self, record: CallRecord, token: str, code: str) -> web.Response:
        """Answers with one of Slack's codes; a missing scope is named as though the app did not have the method's."""
        method = METHODS.get(record.method)
        missing = {method.scope} if method and method.scope and code == "missing_scope" else set()
        provided = _listed(self._dispatcher.app.scopes - missing)
        detail = {"needed": ",".join(missing), "provided": provided} if missing else {}
        body = SlackError(code, detail=detail).response_body()
        return web.json_response(body, headers=self._headers(method, token, without=missing))

    def _headers(self, method: Method | None, token: str, without: Collection[str] = ()) -> dict[str, str]:
        """Returns what Slack sends with each answer to a token that it knows, be it a refusal: the token's scopes."""
        headers = {"Cache-Control": "no-store"}
        if self._credentials.refusal:
            return headers
        if token == self._credentials.bot_token:
            headers["X-OAuth-Scopes"] = _listed(self._dispatcher.app.scopes.difference(without))
        elif token == self._credentials.app_token:
            headers["X-OAuth-Scopes"] = SOCKET_MODE_SCOPE
        if method and method.scope:
            headers["X-Accepted-OAuth-Scopes"] = method.scope
        return headers


def _listed(scopes: Collection[str]) -> str:
    return ",".join(sorted(scopes))


def _rate_limited(seconds: int) -> web.Response:
    body = {"ok": False, "error": "ratelimited"}
    return web.json_response(body, status=429, headers={"Retry-After": str(seconds)})
