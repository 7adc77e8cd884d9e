"""The Web API over HTTP: reads each call's token and arguments, checks them, records and answers it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from bot.workspace.model.app_config import AppManifests
from bot.workspace.model.entities import Json, SlackError
from bot.workspace.model.state import State
from bot.workspace.web_api.method import Credentials, MethodCall
from bot.workspace.web_api.methods import METHODS
from bot.workspace.wire.arguments import Arguments, json_object


async def read_arguments(request: web.Request) -> tuple[str, Arguments]:
    """Returns the token (empty if there is none) and the other arguments.

    Raises:
        SlackError: ``invalid_json``, ``json_not_object``, ``invalid_form_data``, ``invalid_post_type``.
    """
    values: Json = dict(request.query)
    if request.method == "POST":
        values |= await _body(request)
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else "", Arguments(values)


async def _body(request: web.Request) -> Mapping[str, Any]:
    kind = request.content_type
    if not request.body_exists:
        return {}
    try:
        raw = await request.read()
    except web.RequestPayloadError:
        raise SlackError("invalid_post_type") from None
    if kind == "application/json":
        return json_object(raw)
    if kind in {"application/x-www-form-urlencoded", "application/octet-stream"}:
        return _form(raw)
    raise SlackError("invalid_post_type")


def _form(raw: bytes) -> Json:
    try:
        return dict(parse_qsl(raw.decode("utf-8"), keep_blank_values=False, max_num_fields=1000))
    except ValueError:
        raise SlackError("invalid_form_data") from None


@dataclass
class CallRecord:
    """The record of one call.

    Args:
        method: Such as ``chat.postMessage``.
        args: Its arguments, without the token.
        at: When it arrived, in seconds.
        applied: Whether it was carried out, even if the answer then failed.
        error: Slack's error code if it was refused, else None.
        response: The answer, even if it did not get through.
    """

    method: str
    args: Json
    at: float
    applied: bool = False
    error: str | None = None
    response: Json = field(default_factory=dict)


MAX_RECORDED_CALLS = 100_000


@dataclass(eq=False)
class WebApi:
    """Answers ``/api/<method>`` and keeps records of the most recent calls.

    Args:
        state: The workspace.
        manifests: The scopes of the app that calls.
        new_call: Returns the context of a call with these arguments.
        credentials: The valid tokens.
        notify: Called when a call has been answered.
    """

    state: State
    manifests: AppManifests
    new_call: Callable[[Arguments], MethodCall]
    credentials: Credentials
    notify: Callable[[], None]
    calls: list[CallRecord] = field(default_factory=list, init=False)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one request. Like Slack, it reports nearly all errors in the body, with status 200."""
        try:
            token, arguments = await read_arguments(request)
        except SlackError as error:
            return web.json_response(error.response_body())
        record = self._record(request.match_info["method"], arguments)
        try:
            record.response = {"ok": True, **self._answer_of(record.method, token, arguments)}
            record.applied = True
        except SlackError as error:
            record.error, record.response = error.code, error.response_body()
        self.notify()
        return web.json_response(record.response, headers=self._headers(token))

    def _record(self, method: str, arguments: Arguments) -> CallRecord:
        record = CallRecord(method, arguments.as_dict(), self.state.now())
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
        self.credentials.check(token, method.token)
        call = self.new_call(arguments)
        if method.scope:
            call.require_scope(method.scope)
        return method.handler(call)

    def _headers(self, token: str) -> dict[str, str]:
        """Returns the headers of an answer. Slack lists the scopes of the bot's token even in refusals."""
        headers = {"Cache-Control": "no-store"}
        if self.credentials.refusal:
            return headers
        if token == self.credentials.bot_token:
            headers["X-OAuth-Scopes"] = ",".join(sorted(self.credentials.granted(self.manifests.granted_scopes)))
        return headers
