"""The Web API over HTTP: checks each call's token, scope and, if switched on, rate limit; records and answers it."""

import math
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial

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
POSTS = frozenset({"chat.postMessage", "chat.postEphemeral"})
POST_BURST = 3
MINUTE = 60.0


class RateLimits:
    """Slack's rate limits: about one post per second and channel with short bursts; other methods by their tier.

    Args:
        now: The clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._calls: dict[str, deque[float]] = {}

    def retry_after(self, method: str, channel: str, per_minute: int) -> int | None:
        """Returns whole seconds to wait, or None after counting an allowed call."""
        if method in POSTS:
            return self._count(f"{method} {channel}", POST_BURST, float(POST_BURST))
        return self._count(method, per_minute, MINUTE)

    def _count(self, key: str, allowed: int, seconds: float) -> int | None:
        now = self._now()
        times = self._calls.setdefault(key, deque())
        while times and times[0] <= now - seconds:
            times.popleft()
        if len(times) >= allowed:
            return max(1, math.ceil(times[0] + seconds - now))
        times.append(now)
        return None


@dataclass(frozen=True)
class ReceivedCall:
    """A Web API call that has not been carried out yet.

    Args:
        request: The HTTP request.
        record: Its record.
        channels: The id and the name of the channel that it names; empty for none.
        carry_out: Carries the call out and returns the answer.
        refuse: Returns a refusal with one of Slack's error codes.
    """

    request: web.Request
    record: CallRecord
    channels: frozenset[str]
    carry_out: Callable[[], web.Response]
    refuse: Callable[[str], web.Response]


class WebApi:
    """Answers ``/api/<method>`` and keeps records of the most recent calls.

    Args:
        state: The workspace.
        manifests: The scopes of the app that calls.
        new_call: Returns the context of a call with these arguments.
        credentials: The valid tokens.
        rate_limits: Slack's rate limits; None for none.
        answer: Answers a call, usually by carrying it out.
        notify: Called when a call arrives and when it has been answered.
    """

    def __init__(
        self,
        state: State,
        manifests: AppManifests,
        new_call: Callable[[Arguments], MethodCall],
        credentials: Credentials,
        rate_limits: RateLimits | None,
        *,
        answer: Callable[[ReceivedCall], Awaitable[web.StreamResponse]],
        notify: Callable[[], None],
    ) -> None:
        self.calls: list[CallRecord] = []
        self._state = state
        self._manifests = manifests
        self._new_call = new_call
        self._credentials = credentials
        self._rate_limits = rate_limits
        self._answer = answer
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
            return await self._respond(request, record, token, arguments)
        finally:
            self._notify()

    def _record(self, method: str, arguments: Arguments) -> CallRecord:
        record = CallRecord(method, arguments.as_dict(), self._state.now())
        self.calls.append(record)
        if len(self.calls) > MAX_RECORDED_CALLS:
            del self.calls[: MAX_RECORDED_CALLS // 2]
        self._notify()
        return record

    async def _respond(
        self, request: web.Request, record: CallRecord, token: str, arguments: Arguments
    ) -> web.StreamResponse:
        carry_out, refuse = partial(self._carry_out, record, token, arguments), partial(self._refusal, record, token)
        call = ReceivedCall(request, record, self._channel_names(arguments), carry_out, refuse)
        return await self._answer(call)

    def _carry_out(self, record: CallRecord, token: str, arguments: Arguments) -> web.Response:
        self._execute(record, token, arguments)
        if record.error == "ratelimited":
            return rate_limited(record.response.pop("retry_after"))
        return web.json_response(record.response, headers=self._headers(METHODS.get(record.method), token))

    def _execute(self, record: CallRecord, token: str, arguments: Arguments) -> None:
        try:
            record.response = {"ok": True, **self._answer_of(record.method, token, arguments)}
            record.applied = True
        except SlackError as error:
            record.error, record.response = error.code, error.response_body()

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
        channel = str(arguments.as_dict().get("channel", ""))
        if self._rate_limits and (seconds := self._rate_limits.retry_after(name, channel, method.per_minute)):
            raise SlackError("ratelimited", detail={"retry_after": seconds})
        return method.handler(call)

    def _channel_names(self, arguments: Arguments) -> frozenset[str]:
        """Returns the channel's id and its name."""
        given = arguments.as_dict().get("channel")
        if not isinstance(given, str):
            return frozenset()
        channel = self._state.find_channel(given)
        return frozenset({given, channel.id, channel.name} if channel else {given})

    def _granted(self) -> frozenset[str]:
        return self._credentials.granted(self._manifests.granted_scopes)

    def _refusal(self, record: CallRecord, token: str, code: str) -> web.Response:
        """Refuses a call with one of Slack's codes; for ``missing_scope``, as if the app lacked the method's scope."""
        record.error, method = code, METHODS.get(record.method)
        missing = {method.scope} if method and method.scope and code == "missing_scope" else set()
        provided = _listed(self._granted() - missing)
        detail = {"needed": ",".join(missing), "provided": provided} if missing else {}
        body = SlackError(code, detail=detail).response_body()
        return web.json_response(body, headers=self._headers(method, token, without=missing))

    def _headers(self, method: Method | None, token: str, without: Collection[str] = ()) -> dict[str, str]:
        """Returns the headers of an answer. Slack lists the scopes of a known token even in refusals."""
        headers = {"Cache-Control": "no-store"}
        if self._credentials.refusal:
            return headers
        if token == self._credentials.bot_token:
            headers["X-OAuth-Scopes"] = _listed(self._granted().difference(without))
        elif token == self._credentials.app_token:
            headers["X-OAuth-Scopes"] = SOCKET_MODE_SCOPE
        if method and method.scope:
            headers["X-Accepted-OAuth-Scopes"] = method.scope
        return headers


def _listed(scopes: Collection[str]) -> str:
    return ",".join(sorted(scopes))


def rate_limited(seconds: int) -> web.Response:
    """Returns a 429 answer with Retry-After in whole seconds."""
    body = {"ok": False, "error": "ratelimited"}
    return web.json_response(body, status=429, headers={"Retry-After": str(seconds)})
