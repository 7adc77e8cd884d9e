"""Calls of Slack's Web API, with timeouts, and errors translated into bot.errors.

Calls wait until Slack's rate limits, which all processes share, allow them. Calls of the outbox pass, because it took
them from the budget when it claimed the notice (bot.scheduler.outbox). The log output of Slack's libraries is
suppressed, because it would contain messages and URLs that grant access.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.proxy_env_variable_loader import load_http_proxy_from_env
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot import errors
from bot.domain.slack_limits import SLACK_LIMITS, Budget, Grant, SlackLimits, SlackMethod
from bot.runtime.http.proxies import is_this_machine, proxy_address
from bot.runtime.http.retry_after import retry_after_in
from bot.runtime.recent import RecentDict
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.untrusted_json import text_at
from bot.slack.sending.authorization import NOT_ALLOWED, missing_scopes_in, refusal_of_call

logger = logging.getLogger(__name__)


def quiet_logger(name: str) -> logging.Logger:
    """Returns a logger at level WARNING for a library, which then does not even format its debug messages."""
    logger = logging.getLogger(name)
    logger.setLevel(logging.WARNING)
    return logger


def silent_logger(name: str) -> logging.Logger:
    """Returns a logger that logs nothing, for the Socket Mode client: its errors contain the URL with its ticket, and
    the receiver reports them.
    """
    logger = logging.getLogger(name)
    logger.setLevel(logging.CRITICAL + 1)
    logger.propagate = False
    return logger


CALL_SECONDS = 10.0
CONNECT_SECONDS = 5.0
_GRACE_SECONDS = 1.0
"""How much longer a call may take than its HTTP request, whose own timeout gives a more precise error."""


def new_session() -> aiohttp.ClientSession:
    """Returns the session for all of a process's calls to Slack. The caller closes it."""
    timeout = aiohttp.ClientTimeout(total=CALL_SECONDS, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)
    return aiohttp.ClientSession(timeout=timeout)


def slack_proxy(url: str) -> str | None:
    """Returns the proxy's URL; None for this machine itself and the hosts in NO_PROXY, which slack-sdk has not.

    Raises:
        ConfigError: The proxy that would be used is neither http nor https.
    """
    host = urlsplit(url).hostname or ""
    if is_this_machine(host) or proxy_bypass(host):
        return None
    address = load_http_proxy_from_env()
    return proxy_address(address) if address else None


LONGEST_WAIT = 3.0
"""Seconds that a call may wait for its turn. If it would take longer, an error says when to retry."""
_SAID = frozenset(SlackMethod)
UseBudget = Callable[[str, Callable[[Budget], Grant]], Awaitable[Grant]]
"""Uses the budget of a method's calls, which all processes share. Raises StoreError."""


@dataclass(eq=False)
class CallGate:
    """The gate of a process: look-ups wait here until Slack's `limits` allow them. `yields`: see Budget."""

    budget: UseBudget
    limits: SlackLimits = SLACK_LIMITS
    _: KW_ONLY
    yields: bool = False
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _waiting: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int), init=False)
    _taken: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int), init=False)
    _turns: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock), init=False)

    async def enter(self, method: str) -> None:
        """Waits until a method may be called. Raises ChatRateLimited if that takes too long. If the database is
        unavailable, the call is allowed.
        """
        if not self._is_limited(method):
            return
        self._waiting[method] += 1
        try:
            async with self._turns[method]:
                if self._taken[method] == 0:
                    self._taken[method] = await self._take(method)
                self._taken[method] -= 1
        finally:
            self._waiting[method] -= 1

    async def refused(self, method: str, retry_after: float) -> None:
        """Pauses a method in all processes for as long as Slack says."""
        if not self._is_limited(method):
            return
        self._taken[method] = 0
        try:
            await self.budget(method, lambda budget: budget.refuse(method, retry_after))
        except errors.StoreError as error:
            logger.debug("the rate limit of %s could not be recorded: %s", method, error)

    async def _take(self, method: str) -> int:
        """Takes calls for all that are waiting now, in one transaction."""
        waited = 0.0
        while True:
            try:
                grant = await self.budget(
                    method, lambda budget: budget.take(method, self._waiting[method], yields=self.yields)
                )
            except errors.StoreError:
                return 1
            if grant.calls:
                return grant.calls
            if waited + grant.wait > LONGEST_WAIT:
                raise errors.ChatRateLimited("ratelimited", retry_after=grant.wait, method=method)
            await self.sleep(grant.wait)
            waited += grant.wait

    def _is_limited(self, method: str) -> bool:
        return method in self.limits.methods and method not in _SAID


async def _unchanged(channel_id: str) -> str:
    return channel_id


class NewestChannelIds:
    """The current ids of channels whose id Slack has changed, cached per process. `find` returns the newest id of a
    channel, and may raise StoreError.
    """

    def __init__(self, find: Callable[[str], Awaitable[str]] = _unchanged) -> None:
        self._find = find
        self._newest = RecentDict[str, str](1_000)

    def newest(self, channel_id: str) -> str:
        """Returns the newest id known so far."""
        return self._newest.get(channel_id, channel_id)

    async def look_up(self, channel_id: str) -> str:
        """Looks up the newest id and caches it. If that fails, returns the cached one."""
        try:
            found = await self._find(channel_id)
        except errors.StoreError:
            return self.newest(channel_id)
        self._newest[channel_id] = found
        return found


Called = Callable[[str, errors.ChatError | None, float], None]
"""Is told of each call: its method, the error that it ended with, if any, and the seconds that it took."""


class SlackClient(AsyncWebClient):
    """Adds a timeout to each call, and uses the current token. It never
    retries automatically: a retried post could appear twice; the outbox prevents that.

    Args:
        token: The bot token or, for opening sockets, the app-level token.
        session: The session for HTTP requests.
        base_url: A URL other than Slack's own.
        channel_ids: The current ids of channels whose id Slack has changed.
        gate: Delays calls until Slack's limits allow them.
        call_seconds: The timeout of a call.
        token_refused: Is set if Slack refuses the token.
        called: See Called.
    """

    def __init__(
        self,
        token: RotatingSecret | str,
        session: aiohttp.ClientSession,
        *,
        base_url: str = AsyncWebClient.BASE_URL,
        channel_ids: NewestChannelIds | None = None,
        gate: CallGate | None = None,
        call_seconds: float = CALL_SECONDS,
        token_refused: asyncio.Event | None = None,
        called: Called = lambda _, __, ___: None,
    ) -> None:
        self._rotating_token = RotatingSecret(token) if isinstance(token, str) else token
        super().__init__(
            timeout=int(call_seconds),
            token=self._rotating_token.newest,
            base_url=base_url,
            session=session,
            retry_handlers=[],
            logger=quiet_logger("bot.slack.web_client"),
        )
        self.proxy = slack_proxy(self.base_url)
        self._gate = gate
        self._channel_ids = channel_ids or NewestChannelIds()
        self._token_refused = token_refused or asyncio.Event()
        self._called = called
        self._call_seconds = call_seconds

    async def api_call(self, api_method: str, **options: Any) -> AsyncSlackResponse:
        """See AsyncWebClient, whose methods all use this one. If Slack does not find a channel, it is retried under its
        newest id.
        """
        where, channel_id = _channel_of(options)
        if not channel_id:
            return await self._call(api_method, options)
        newest = self._channel_ids.newest(channel_id)
        try:
            return await self._call(api_method, _with_channel(options, where, newest))
        except SlackApiError as error:
            if error.response.get("error") != "channel_not_found":
                raise
            found = await self._channel_ids.look_up(channel_id)
            if found == newest:
                raise
        return await self._call(api_method, _with_channel(options, where, found))

    async def _call(self, api_method: str, options: Mapping[str, Any]) -> AsyncSlackResponse:
        if self._gate is not None:
            await self._gate.enter(api_method)
        self.token = self._rotating_token.newest
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self._call_seconds + _GRACE_SECONDS):
                response = await super().api_call(api_method, **options)
        except Exception as error:
            self._called(api_method, chat_error_from(error), time.perf_counter() - began)
            if not isinstance(error, SlackApiError):
                raise
            match chat_error_from(error):
                case errors.ChatNotAllowed():
                    self._token_refused.set()
                case errors.ChatRateLimited() as limited:
                    if self._gate is not None:
                        await self._gate.refused(api_method, limited.retry_after)
                    raise errors.ChatRateLimited(
                        limited.reason, retry_after=limited.retry_after, method=api_method
                    ) from None
            raise
        self._called(api_method, None, time.perf_counter() - began)
        return response


def _channel_of(options: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the channel of a call, and the argument group that names it; empty if there is none."""
    for where in ("json", "params", "data"):
        arguments = options.get(where)
        if isinstance(arguments, dict) and isinstance(arguments.get("channel"), str):
            return where, arguments["channel"]
    return "", ""


def _with_channel(options: Mapping[str, Any], where: str, channel_id: str) -> Mapping[str, Any]:
    return {**options, where: {**options[where], "channel": channel_id}}


UNCERTAIN = frozenset(
    {
        "fatal_error",
        "internal_error",
        "request_timeout",
        "service_unavailable",
        "team_added_to_org",
        "timeout",
        "update_failed",
    }
)
RATE_LIMITED = frozenset({"external_channel_migrating", "message_limit_exceeded", "rate_limited", "ratelimited"})


def chat_error_from(error: Exception) -> errors.ChatError:
    """Returns our error for a library's error."""
    match error:
        case errors.ChatError():
            return error
        case SlackApiError():
            return _error_answered(error)
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError() | aiohttp.InvalidURL():
            return errors.ChatUnreachable(type(error).__name__)
        case TimeoutError():
            return errors.ChatUncertain("no_answer_in_time")
        case _:
            return errors.ChatUncertain(type(error).__name__)


def _error_answered(error: SlackApiError) -> errors.ChatError:
    response = error.response
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    answer = getattr(response, "data", None)
    code = text_at(answer, "error")
    if (error_of_status := chat_error_of_status(status, getattr(response, "headers", {}), code)) is not None:
        return error_of_status
    if code in UNCERTAIN or not code:
        return errors.ChatUncertain(code or f"status_{status}")
    if code == "missing_scope":
        return errors.ChatMissingScope(missing_scopes_in(text_at(answer, "needed"), text_at(answer, "provided")))
    return _error_of_code(code, str(getattr(response, "api_url", "")))


def chat_error_of_status(status: object, headers: Mapping[str, str], code: str = "") -> errors.ChatError | None:
    """Returns the error that a response's HTTP status means, if it alone says enough; `code` is Slack's own."""
    if status == HTTPStatus.TOO_MANY_REQUESTS or code in RATE_LIMITED:
        return errors.ChatRateLimited(code or "ratelimited", retry_after=retry_after_in(headers))
    if isinstance(status, int) and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return errors.ChatUncertain(code or f"status_{status}")
    return None


def _error_of_code(code: str, url: str) -> errors.ChatError:
    """An unknown code counts as a rejection of this one call."""
    if code == "not_in_channel":
        return errors.ChatNotInChannel(code)
    if code in NOT_ALLOWED:
        return errors.ChatNotAllowed(code, words=refusal_of_call(url, code))
    return errors.ChatRejected(code)


async def call(request: Awaitable[AsyncSlackResponse]) -> Mapping[str, Any]:
    """Awaits a call of a client and returns the response. Raises ChatError, whose message contains no URL or token."""
    answer, _ = await call_with_headers(request)
    return answer


async def call_with_headers(
    request: Awaitable[AsyncSlackResponse],
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Like `call`, but also returns the response's headers."""
    try:
        response = await request
    except Exception as error:  # noqa: BLE001 - every library error is translated
        raise chat_error_from(error) from None
    if not isinstance(response.data, dict):
        raise errors.ChatUncertain("unreadable_answer")
    return response.data, response.headers


def next_cursor(answer: Mapping[str, Any]) -> str:
    """Returns the cursor of an answer's next page; empty on the last one."""
    return text_at(answer, "response_metadata", "next_cursor")
