"""Translates errors of Slack's Web API into bot.errors: whether the call arrived, and what to do about it."""

from http import HTTPStatus

import aiohttp
from slack_sdk.errors import SlackApiError

from bot.errors import (
    ChatError,
    ChatMissingScope,
    ChatNotAllowed,
    ChatNotInChannel,
    ChatRateLimited,
    ChatRejected,
    ChatUncertain,
    ChatUnreachable,
)
from bot.runtime.http.retry_after import retry_after_in
from bot.runtime.lenient_model import LenientModel, Text
from bot.slack.sending.scopes import missing_scopes_in
from bot.slack.sending.tokens import NOT_ALLOWED, refusal_of_call

NOT_IN_CHANNEL = frozenset({"not_in_channel"})
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


class ErrorAnswer(LenientModel):
    """The answer to a call that failed. `needed` and `provided` are scopes."""

    error: Text = ""
    needed: Text = ""
    provided: Text = ""


def chat_error_from(error: Exception) -> ChatError:
    """Returns our error for a library's error."""
    match error:
        case ChatError():
            return error
        case SlackApiError():
            return _error_answered(error)
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError() | aiohttp.InvalidURL():
            return ChatUnreachable(type(error).__name__)
        case TimeoutError():
            return ChatUncertain("no_answer_in_time")
        case _:
            return ChatUncertain(type(error).__name__)


def _error_answered(error: SlackApiError) -> ChatError:
    response = error.response
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    answer = ErrorAnswer.read(getattr(response, "data", None))
    code = answer.error
    if status == HTTPStatus.TOO_MANY_REQUESTS or code in RATE_LIMITED:
        return ChatRateLimited(code or "ratelimited", retry_after=retry_after_in(getattr(response, "headers", {})))
    if code in UNCERTAIN or not code or (isinstance(status, int) and status >= HTTPStatus.INTERNAL_SERVER_ERROR):
        return ChatUncertain(code or f"status_{status}")
    if code == "missing_scope":
        return ChatMissingScope(missing_scopes_in(answer.needed, answer.provided))
    return _error_of_code(code, str(getattr(response, "api_url", "")))


def _error_of_code(code: str, url: str) -> ChatError:
    """An unknown code counts as a rejection of this one call."""
    if code in NOT_IN_CHANNEL:
        return ChatNotInChannel(code)
    if code in NOT_ALLOWED:
        return ChatNotAllowed(code, words=refusal_of_call(url, code))
    return ChatRejected(code)
