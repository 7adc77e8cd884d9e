"""Calls of Slack's Web API, bounded in time, with foreign errors made ours (bot.errors) by what is to be done.
Slack's libraries are kept quiet: they would log messages, and addresses that let their holder in.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.errors import ChatMissingScope, ChatRateLimited, ChatUncertain
from bot.slack.sending.api_errors import chat_error_from
from bot.slack.sending.call_gate import CallGate
from bot.slack.sending.channel_ids import NewestChannelIds
from bot.slack.sending.scopes import MissingScopes
from bot.slack.sending.slack_proxy import slack_proxy

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
