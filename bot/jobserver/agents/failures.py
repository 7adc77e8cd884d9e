"""Recognizes failed turns, which agents often end like successful ones, and says why they failed."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.jobserver.egress.request_rules import RELAY
from bot.jobserver.text import one_line

LOGIN_NEEDED = -32000
"""The protocol's error code for a missing login."""
_ABOUT_A_KEY = re.compile(
    r"\b(?:api|x-api|this|your)[ _-]?key\b|\bunauthori[sz]ed\b|\bauthentication (?:error|failed|required)|\b401\b",
    re.IGNORECASE,
)
"""Errors about a key, as worded by Anthropic, OpenAI, Google and OpenRouter."""
_STOPPED_EARLY = {
    "max_tokens": "its model's answer became too long; ask for less at once",
    "max_turn_requests": "it needed more steps than it allows for one request; ask for less at once",
    "refusal": "its model refused to do this",
    "cancelled": "it gave up by itself",
}


@dataclass(frozen=True)
class TurnEnd:
    """How a turn ended, according to the agent.

    `has_usage`: whether it reported tokens. `was_system_error`: Codex's signal for an error.
    """

    stop_reason: str
    answer: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    has_usage: bool = True
    was_system_error: bool = False


def codex_failure(end: TurnEnd) -> str | None:
    """Returns why a turn failed although it claims success, or None.

    Codex reports errors as its answer and, on request, also as a separate object, in terms that no other agent uses.
    """
    failure = nested(end.meta, "jetbrains", "air", "sessionFailure")
    if isinstance(failure, Mapping) and failure.get("severity") != "warning":
        return one_line(str(failure.get("title") or end.answer or failure.get("category")))
    if end.was_system_error and not end.has_usage:
        return one_line(end.answer) or "a system error"
    return None


def stopped_early(end: TurnEnd) -> str | None:
    """Returns why a turn stopped early, or None if it claims to be complete."""
    if end.stop_reason == "end_turn":
        return None
    reason = _STOPPED_EARLY.get(end.stop_reason, "it stopped for a reason that Pagehand does not know")
    return f"{reason}: {one_line(end.answer)}" if end.stop_reason == "refusal" and end.answer else reason


def request_failed(name: str, code: int, message: str, data: Any, *, login: str) -> str:
    """Describes a protocol error. `login` says how to log in, such as "set A_KEY"."""
    details = one_line(_told(message, data))
    match code:
        case -32000 | 401 | 403:
            return _not_logged_in(name, details, login)
        case 429:
            return f"the provider of {name}'s model accepts no more requests at the moment ({details}); try again later"
        case _:
            return failed(name, details, login=login)


def failed(name: str, details: str, *, login: str) -> str:
    """Describes a failed turn. Some agents pass on their provider's message about a key without a code."""
    return _not_logged_in(name, details, login) if _ABOUT_A_KEY.search(details) else f"{name} failed: {details}"


def _not_logged_in(name: str, details: str, login: str) -> str:
    if RELAY in details:  # the relay's errors look like a provider's, but are never about the key
        return f"{name} failed: {details}"
    return f"{name} is not logged in, or its key is not valid ({details}); {login}"


def _told(message: str, data: Any) -> str:
    """Returns the most useful text; in many agents' errors, it is in the data, and the message is just a heading."""
    message = _inner_message(message)
    if isinstance(data, Mapping):
        more = next((data[key] for key in ("details", "message", "error") if isinstance(data.get(key), str)), "")
        return more if message in {"", "Internal error", "Error"} and more else " ".join(filter(None, [message, more]))
    return f"{message}: {data}" if isinstance(data, str) and data else message


def _inner_message(message: str) -> str:
    """Some agents' messages are their provider's complete JSON responses."""
    if not message.startswith("{"):
        return message
    try:
        inner = nested(json.loads(message), "error", "message")
    except (ValueError, RecursionError):
        return message
    return inner if isinstance(inner, str) and inner else message


def nested(value: Any, *keys: str) -> Any:
    """Returns the value under these keys of nested mappings, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
