"""The Web API over HTTP: checks each call's token and scope, records and answers it."""

from collections.abc import Callable

from aiohttp import web

from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.model.manifests import AppManifests
from bot.workspace.model.state import State
from bot.workspace.web_api.credentials import Credentials
from bot.workspace.web_api.method import Method, MethodCall
from bot.workspace.web_api.methods import METHODS
from bot.workspace.web_api.requests import CallRecord, read_arguments
from bot.workspace.wire.arguments import Arguments

MAX_RECORDED_CALLS = 100_000
SOCKET_MODE_SCOPE = "connections:write"


class WebApi:
    """Answers ``/api/<method>`` and keeps records of the most recent calls.

    Args:
        state: The workspace.
        manifests: The scopes of the app that calls.
        new_call: Returns the context of a call with these arguments.
        credentials: The valid tokens.
        notify: Called when a call has been answered.
    """

    def __init__(
        self,
        state: State,
        manifests: AppManifests,
        new_call: Callable[[Arguments], MethodCall],
        credentials: Credentials,
        notify: Callable[[], None],
    ) -> None:
        self.calls: list[CallRecord] = []
        self._state = state
        self._manifests = manifests
        self._new_call = new_call
        self._credentials = credentials
        self._notify = notify

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one request. Like Slack, it reports nearly all errors in the body, with status 200."""
        try:
            token, arguments = await read_arguments(request)
        except SlackError as error:
            return web.json_response(error.response_body())
        except web.HTTPRequestEntityTooLarge:
            return web.json_response({"ok": False, "error": "request_too_large"}, status=413)
        record = self._record(request.match_info["method"], arguments)
        try:
            record.response = {"ok": True, **self._answer_of(record.method, token, arguments)}
            record.applied = True
        except SlackError as error:
            record.error, record.response = error.code, error.response_body()
        self._notify()
        return web.json_response(record.response, headers=self._headers(METHODS.get(record.method), token))

    def _record(self, method: str, arguments: Arguments) -> CallRecord:
        record = CallRecord(method, arguments.as_dict(), self._state.now())
        self.calls.append(record)
        if len(self.calls) > MAX_RECORDED_CALLS:
            del self.calls[: MAX_RECORDED_CALLS // 2]
        return record

    def _answer_of(self, name: str, token: str, arguments: Arguments) -> Json:
        """Returns the method's answer, without ``ok``.

        Raises:
            SlackError: The call is refused.
        """
        method = METHODS.get(name)
        if method is None:
            raise SlackError("unknown_method", detail={"req_method": name})
        self._credentials.check(token, method.token)
        call = self._new_call(arguments)
        if method.scope:
            call.require_scope(method.scope)
        return method.handler(call)

    def _headers(self, method: Method | None, token: str) -> dict[str, str]:
        """Returns the headers of an answer. Slack lists the scopes of a known token even in refusals."""
        headers = {"Cache-Control": "no-store"}
        if self._credentials.refusal:
            return headers
        if token == self._credentials.bot_token:
            headers["X-OAuth-Scopes"] = ",".join(sorted(self._credentials.granted(self._manifests.granted_scopes)))
        elif token == self._credentials.app_token:
            headers["X-OAuth-Scopes"] = SOCKET_MODE_SCOPE
        if method and method.scope:
            headers["X-Accepted-OAuth-Scopes"] = method.scope
        return headers
