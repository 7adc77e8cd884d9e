"""Calls of Slack's Web API, bounded in time, with foreign errors made ours (bot.errors) by what is to be done."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.errors import (
    ChatBusy,
    ChatError,
    ChatNotAllowed,
    ChatNotInChannel,
    ChatRefused,
    ChatUncertain,
    ChatUnreachable,
)
from bot.slack.logs import quiet_libraries, quiet_logger
from bot.slack.proxies import proxy_for

CALL_SECONDS = 10.0
CONNECT_SECONDS = 5.0

NOT_IN_CHANNEL = frozenset({"not_in_channel"})
NOT_ALLOWED = frozenset(
    {
        "access_denied",
        "account_inactive",
        "ekm_access_denied",
        "enterprise_is_restricted",
        "invalid_auth",
        "missing_scope",
        "no_permission",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "team_access_not_granted",
        "token_expired",
        "token_revoked",
        "two_factor_setup_required",
    }
)
UNCERTAIN = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org", "timeout"}
)
BUSY = frozenset({"ratelimited", "rate_limited"})


@dataclass(frozen=True)
class Identity:
    """Who Pagehand is in this workspace, by `auth.test`."""

    team_id: str
    team: str
    bot_user_id: str
    bot_id: str


def new_session() -> aiohttp.ClientSession:
    """The one session of a process for all calls to Slack; its owner closes it."""
    timeout = aiohttp.ClientTimeout(total=CALL_SECONDS, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)
    return aiohttp.ClientSession(timeout=timeout)


def new_client(token: str, session: aiohttp.ClientSession, *, base_url: str | None = None) -> AsyncWebClient:
    """A client that never repeats a call by itself: a repeated post would be said twice, and the outbox knows better.

    `token` is the bot's or, for opening sockets, the app's; `base_url` is another address than Slack's own.
    """
    quiet_libraries()
    client = AsyncWebClient(
        token=token,
        base_url=base_url or AsyncWebClient.BASE_URL,
        session=session,
        timeout=int(CALL_SECONDS),
        retry_handlers=[],
        logger=quiet_logger("bot.slack.web_client"),
    )
    client.proxy = proxy_for(client.base_url)
    return client


async def identify(client: AsyncWebClient) -> Identity:
    """Asks Slack who we are. ChatNotAllowed means a bad token: do not start with it."""
    answer = await call(client.auth_test())
    return Identity(
        team_id=_text(answer.get("team_id")),
        team=_text(answer.get("team")),
        bot_user_id=_text(answer.get("user_id")),
        bot_id=_text(answer.get("bot_id")),
    )


async def call(request: Awaitable[AsyncSlackResponse]) -> Mapping[str, Any]:
    """Awaits one call and returns its answer. Raises only ChatError's classes, whose words hold no address or token."""
    try:
        async with asyncio.timeout(CALL_SECONDS + 1):
            data = (await request).data
    except Exception as error:  # noqa: BLE001 - whatever the libraries raise, it becomes one of ours
        raise translated(error) from None
    if not isinstance(data, dict):
        raise ChatUncertain("unreadable_answer")
    return data


def translated(error: Exception) -> ChatError:
    """What a library's error means for the call that raised it."""
    match error:
        case SlackApiError():
            return _answered(error)
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError() | aiohttp.InvalidURL():
            return ChatUnreachable(type(error).__name__)
        case TimeoutError():
            return ChatUncertain("no_answer_in_time")
        case _:
            return ChatUncertain(type(error).__name__)


def _answered(error: SlackApiError) -> ChatError:
    response = error.response
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    data = getattr(response, "data", None)
    code = _text(data.get("error")) if isinstance(data, dict) else ""
    if status == HTTPStatus.TOO_MANY_REQUESTS or code in BUSY:
        return ChatBusy(code or "ratelimited", retry_after=_retry_after(getattr(response, "headers", {})))
    if code in UNCERTAIN or not code or (isinstance(status, int) and status >= HTTPStatus.INTERNAL_SERVER_ERROR):
        return ChatUncertain(code or f"status_{status}")
    return refusal(code)


def refusal(code: str) -> ChatError:
    """What an error code of Slack's means; one nobody knows is about this one message."""
    if code in NOT_IN_CHANNEL:
        return ChatNotInChannel(code)
    if code in NOT_ALLOWED:
        return ChatNotAllowed(code)
    return ChatRefused(code)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        seconds = float(headers.get("Retry-After", ""))
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), 3_600.0) if seconds == seconds else None  # noqa: PLR0124 - NaN is unequal to itself


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
