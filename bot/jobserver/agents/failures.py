"""Tells failed turns from good ones, since agents also end failed turns normally, and says why they failed."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.jobserver.egress.refused_requests import RELAY
from bot.jobserver.text import one_line

LOGIN_NEEDED = -32000
"""The protocol's code for that."""
_ABOUT_A_KEY = re.compile(
    r"\b(?:api|x-api|this|your)[ _-]?key\b|\bunauthori[sz]ed\b|\bauthentication (?:error|failed|required)|\b401\b",
    re.IGNORECASE,
)
"""As Anthropic, OpenAI, Google and OpenRouter word it."""
_STOPPED_EARLY = {
    "max_tokens": "its model's answer became too long; ask for less at once",
    "max_turn_requests": "it needed more steps than it takes for one request; ask for less at once",
    "refusal": "its model refused to do this",
    "cancelled": "it gave up by itself",
}


@dataclass(frozen=True)
class TurnEnd:
    """How a turn ended, in the agent's own words.

    `has_usage`: whether tokens were counted. `was_system_error`: Codex's own sign of an error.
    """

    stop_reason: str
    answer: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    has_usage: bool = True
    was_system_error: bool = False


FailureRule = Callable[[TurnEnd], str | None]
"""Returns why a turn failed that claims to have ended well, or None."""


def never(_: TurnEnd) -> str | None:
    return None


def codex_failure(end: TurnEnd) -> str | None:
    """Codex tells errors as its answer; where it was asked to, also as an object of its own."""
    failure = nested(end.meta, "jetbrains", "air", "sessionFailure")
    if isinstance(failure, Mapping) and failure.get("severity") != "warning":
        return one_line(str(failure.get("title") or end.answer or failure.get("category")))
    if end.was_system_error and not end.has_usage:
        return one_line(end.answer) or "a system error"
    return None


def goose_failure(end: TurnEnd) -> str | None:
    """Goose tells errors of its model as its answer; of used-up credit it says nothing at all."""
    if not end.answer.strip():
        return "it ended without a word, as it does when its model's credit is used up"
    return one_line(end.answer) if end.answer.lstrip().startswith("Ran into this error") else None


def stopped_early(end: TurnEnd) -> str | None:
    """Returns why a turn did not come to its end, or None where it claims that it did."""
    if end.stop_reason == "end_turn":
        return None
    reason = _STOPPED_EARLY.get(end.stop_reason, "it stopped for a reason that Pagehand does not know")
    return f"{reason}: {one_line(end.answer)}" if end.stop_reason == "refusal" and end.answer else reason


def request_failed(name: str, code: int, message: str, data: Any, *, login: str) -> str:
    """Returns an error of the protocol in words. `login` says what to set, such as "set A_KEY"."""
    told = one_line(_told(message, data))
    match code:
        case -32000 | 401 | 403:
            return _not_logged_in(name, told, login)
        case 429:
            return f"the provider of {name}'s model takes no more requests just now ({told}); try again later"
        case _:
            return failed(name, told, login=login)


def failed(name: str, told: str, *, login: str) -> str:
    """Returns why a turn failed. Some agents hand on their provider's words about a key, and no code."""
    return _not_logged_in(name, told, login) if _ABOUT_A_KEY.search(told) else f"{name} failed: {told}"


def _not_logged_in(name: str, told: str, login: str) -> str:
    if RELAY in told:  # it answers as a provider does, and the key is none of its reasons
        return f"{name} failed: {told}"
    return f"{name} is not logged in, or its key is not valid ({told}); {login}"


def _told(message: str, data: Any) -> str:
    """What is most telling: agents put the cause into the error's data, and `Internal error` into its message."""
    message = _inner_message(message)
    if isinstance(data, Mapping):
        more = next((data[key] for key in ("details", "message", "error") if isinstance(data.get(key), str)), "")
        return more if message in {"", "Internal error", "Error"} and more else " ".join(filter(None, [message, more]))
    return f"{message}: {data}" if isinstance(data, str) and data else message


def _inner_message(message: str) -> str:
    """Gemini's messages are its provider's whole answers, in JSON."""
    if not message.startswith("{"):
        return message
    try:
        inner = nested(json.loads(message), "error", "message")
    except (ValueError, RecursionError):
        return message
    return inner if isinstance(inner, str) and inner else message


def nested(value: Any, *keys: str) -> Any:
    """Returns what stands under these keys of mappings in mappings; None where nothing does."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
