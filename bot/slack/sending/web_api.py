"""Calls of Slack's Web API, bounded in time, with foreign errors made ours (bot.errors) by what is to be done, and no
more of them than Slack's limits allow, which all processes share. What is said in threads got its call when it was
claimed (bot.scheduler.outbox). Slack's libraries are kept quiet: they would log messages, and addresses that let their
holder in.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.domain.slack_limits import SLACK_LIMITS, Grant, SlackLimits, SlackMethod
from bot.errors import ChatMissingScope, ChatOverBudget, ChatRateLimited, ChatUncertain, StoreError
from bot.slack.sending.api_errors import chat_error_from
from bot.slack.sending.channel_ids import NewestChannelIds
from bot.slack.sending.scopes import MissingScopes
from bot.slack.sending.slack_proxy import slack_proxy

logger = logging.getLogger(__name__)

_LIBRARIES = ("slack_sdk", "slack_bolt")


def quiet_logger(name: str) -> logging.Logger:
    """Returns a logger at level WARNING to hand to a library, which then does not even build its debug lines."""
    logger = logging.getLogger(name)
    logger.setLevel(logging.WARNING)
    return logger


def silent_logger(name: str) -> logging.Logger:
    """Returns a logger that logs nothing, for the Socket Mode client: its failures carry the address with its ticket,
    and the receiver tells of them.
    """
    logger = logging.getLogger(name)
    logger.setLevel(logging.CRITICAL + 1)
    logger.propagate = False
    return logger


def quiet_libraries() -> None:
    """Sets the loggers of Slack's libraries to WARNING, whatever level the root logger has."""
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)


CALL_SECONDS = 10.0
CONNECT_SECONDS = 5.0
_NOT_FOUND = "channel_not_found"
_GRACE_SECONDS = 1.0
"""How much longer a call gets than its HTTP request, whose own time limit tells more exactly what happened."""


def new_session() -> aiohttp.ClientSession:
    """Returns the one session of a process for all calls to Slack; its owner closes it."""
    timeout = aiohttp.ClientTimeout(total=CALL_SECONDS, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)
    return aiohttp.ClientSession(timeout=timeout)


LONGEST_WAIT = 3.0
"""Seconds that a call waits for its turn; if that is longer, whoever wants it is told when to come again."""
_ASKED_FOR = 10.0
"""Seconds to leave a method alone that answers 429 without a time."""
_SAID = frozenset(SlackMethod)


class CallBudget(Protocol):
    """What all processes together may call."""

    async def take(self, method: str, wanted: int, limits: SlackLimits) -> Grant:
        """Takes at most so many calls of a method. Raises StoreError."""

    async def refused(self, method: str, retry_after: float, limits: SlackLimits) -> None:
        """Records a 429. Raises StoreError."""


class CallGate:
    """One for a process. `limits` are Slack's; `sleep` lets time pass."""

    def __init__(
        self,
        budget: CallBudget,
        limits: SlackLimits = SLACK_LIMITS,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._budget = budget
        self._limits = limits
        self._sleep = sleep
        self._waiting: defaultdict[str, int] = defaultdict(int)
        self._taken: defaultdict[str, int] = defaultdict(int)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def enter(self, method: str) -> None:
        """Waits till a method may be called. Raises ChatOverBudget where that takes too long; a database that is away
        keeps nobody from calling.
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

    async def refused(self, method: str, retry_after: float | None) -> None:
        """Has everybody leave a method alone for as long as Slack says."""
        if not self._is_limited(method):
            return
        self._taken[method] = 0
        try:
            await self._budget.refused(method, _ASKED_FOR if retry_after is None else retry_after, self._limits)
        except StoreError as error:
            logger.debug("that Slack limits %s was not recorded: %s", method, error)

    async def _take(self, method: str) -> int:
        """Takes a call for each that waits now, in one transaction."""
        waited = 0.0
        while True:
            try:
                grant = await self._budget.take(method, self._waiting[method], self._limits)
            except StoreError:
                return 1
            if grant.calls:
                return grant.calls
            if waited + grant.wait > LONGEST_WAIT:
                raise ChatOverBudget("ratelimited", retry_after=grant.wait, method=method)
            await self._sleep(grant.wait)
            waited += grant.wait

    def _is_limited(self, method: str) -> bool:
        return method in self._limits.methods and method not in _SAID


class _Client(AsyncWebClient):
    """Bounds the time of each call, and notes which scopes the answers show to be missing, whoever makes the call and
    whatever comes of it.
    """

    def __init__(
        self,
        *,
        missing_scopes: MissingScopes,
        channel_ids: NewestChannelIds,
        gate: CallGate | None,
        call_seconds: float,
        **options: Any,
    ) -> None:
        super().__init__(timeout=int(call_seconds), **options)
        self._gate = gate
        self._channel_ids = channel_ids
        self._missing_scopes = missing_scopes
        self._call_seconds = call_seconds

    async def api_call(self, api_method: str, **options: Any) -> AsyncSlackResponse:
        """See AsyncWebClient, whose methods all come through here. A channel that Slack does not find by its id is
        looked for by its newest one.
        """
        where, channel_id = _channel_of(options)
        if not channel_id:
            return await self._call(api_method, options)
        newest = self._channel_ids.newest(channel_id)
        try:
            return await self._call(api_method, _with_channel(options, where, newest))
        except SlackApiError as error:
            if error.response.get("error") != _NOT_FOUND:
                raise
            found = await self._channel_ids.look_up(channel_id)
            if found == newest:
                raise
        return await self._call(api_method, _with_channel(options, where, found))

    async def _call(self, api_method: str, options: Mapping[str, Any]) -> AsyncSlackResponse:
        if self._gate is not None:
            await self._gate.enter(api_method)
        try:
            async with asyncio.timeout(self._call_seconds + _GRACE_SECONDS):
                response = await super().api_call(api_method, **options)
        except SlackApiError as error:
            chat_error = chat_error_from(error)
            if isinstance(chat_error, ChatMissingScope):
                self._missing_scopes.add(chat_error.scopes)
            if isinstance(chat_error, ChatRateLimited):
                raise await self._refused(api_method, chat_error) from None
            raise
        self._missing_scopes.remove_granted(response.headers)
        return response

    async def _refused(self, api_method: str, error: ChatRateLimited) -> ChatRateLimited:
        if self._gate is not None:
            await self._gate.refused(api_method, error.retry_after)
        return ChatRateLimited(error.reason, retry_after=error.retry_after, method=api_method)


def _channel_of(options: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the channel that a call is about, and among which arguments it is named; nothing for none."""
    for where in ("json", "params", "data"):
        arguments = options.get(where)
        if isinstance(arguments, dict) and isinstance(arguments.get("channel"), str):
            return where, arguments["channel"]
    return "", ""


def _with_channel(options: Mapping[str, Any], where: str, channel_id: str) -> Mapping[str, Any]:
    return {**options, where: {**options[where], "channel": channel_id}}


def new_client(
    token: str,
    session: aiohttp.ClientSession,
    *,
    base_url: str | None = None,
    missing_scopes: MissingScopes | None = None,
    channel_ids: NewestChannelIds | None = None,
    gate: CallGate | None = None,
    call_seconds: float = CALL_SECONDS,
) -> AsyncWebClient:
    """Returns a client that never repeats a call by itself: a repeated post would be said twice, and the outbox knows
    better.

    Args:
        token: The bot's or, for opening sockets, the app's.
        session: For all HTTP requests.
        base_url: Another address than Slack's own.
        missing_scopes: Is told what the answers show.
        channel_ids: Knows channels whose id Slack changed.
        gate: Lets a call go when Slack's limits allow it.
        call_seconds: For how long each call may take.
    """
    quiet_libraries()
    client = _Client(
        missing_scopes=missing_scopes or MissingScopes(),
        channel_ids=channel_ids or NewestChannelIds(),
        gate=gate,
        call_seconds=call_seconds,
        token=token,
        base_url=base_url or AsyncWebClient.BASE_URL,
        session=session,
        retry_handlers=[],
        logger=quiet_logger("bot.slack.web_client"),
    )
    client.proxy = slack_proxy(client.base_url)
    return client


async def call(request: Awaitable[AsyncSlackResponse]) -> Mapping[str, Any]:
    """Awaits one call of a client and returns its answer. Raises ChatError, whose words hold no address or token."""
    answer, _ = await call_with_headers(request)
    return answer


async def call_with_headers(
    request: Awaitable[AsyncSlackResponse],
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """As `call`, for those who need the answer's headers too."""
    try:
        response = await request
    except Exception as error:  # noqa: BLE001 - whatever the libraries raise, it becomes one of ours
        raise chat_error_from(error) from None
    if not isinstance(response.data, dict):
        raise ChatUncertain("unreadable_answer")
    return response.data, response.headers
