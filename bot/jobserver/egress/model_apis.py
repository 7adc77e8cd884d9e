"""The supported model APIs: their addresses, and the requests that agents need."""

import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from bot.jobserver.egress.anthropic_requests import check_messages
from bot.jobserver.egress.gemini_requests import check_count, check_generation
from bot.jobserver.egress.openai_requests import check_chat, check_responses
from bot.jobserver.egress.refused_requests import RELAY, Refusals, RefusedRequest

BodyCheck = Callable[[Mapping[str, Any]], Refusals]
_ID = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
_QUERY_VALUE = r"[A-Za-z0-9._:=-]{0,200}"
_SENT = frozenset({
    "accept", "agent-session-id", "anthropic-beta", "anthropic-dangerous-direct-browser-access", "anthropic-version",
    "content-type", "conversation_id", "http-referer", "openai-beta", "originator", "session-id", "session_id",
    "thread-id", "user-agent", "x-app", "x-client-request-id", "x-goog-api-client", "x-initiator",
    "x-session-affinity", "x-session-id", "x-title",
})  # fmt: skip
_SENT_KINDS = ("x-claude-code-", "x-codex-", "x-stainless-")
_ANSWERED = frozenset({
    "cache-control", "content-type", "openai-processing-ms", "openai-version", "request-id", "retry-after",
    "retry-after-ms", "x-request-id", "x-should-retry",
})  # fmt: skip
_ANSWERED_KINDS = ("anthropic-ratelimit-", "x-codex-", "x-ratelimit-")
_BEARER = "Bearer "


def _query(*names: str) -> str:
    pair = rf"(?:{'|'.join(names)})={_QUERY_VALUE}"
    return rf"(?:\?{pair}(?:&{pair}){{0,5}})?"


@dataclass(frozen=True)
class _Operation:
    """`pattern` is all of a request's target after the API's prefix. Without `check` it has no body."""

    method: str
    pattern: re.Pattern[str]
    check: BodyCheck | None = None


@dataclass(frozen=True)
class Route:
    """What a request asks for. `target` is what stands after the API's prefix, `model` what that names."""

    target: str
    check: BodyCheck | None
    model: str | None = None


class Dialect(StrEnum):
    """Whose form errors have."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    GEMINI = "gemini"


@dataclass(frozen=True)
class ModelApi:
    """An API: its paths begin with `prefix` at the relay, and stand below `address` at its maker's."""

    dialect: Dialect
    prefix: str
    address: str
    operations: tuple[_Operation, ...] = field(repr=False)

    def route(self, method: str, target: str) -> Route | RefusedRequest:
        """Returns what a request asks for, or why it is refused. The target is taken as it was sent."""
        rest = target.removeprefix(self.prefix)
        for operation in self.operations if rest != target else ():
            if operation.method == method and (found := operation.pattern.fullmatch(rest)):
                return Route(rest, operation.check, found.groupdict().get("model"))
        words = (
            f"{RELAY} refuses this: only what {self.dialect}'s API needs for a conversation is let "
            "through, and no other method, path or parameter."
        )
        return RefusedRequest("a path that is not the model's API", words)


_LISTED = _Operation(
    "GET", re.compile(rf"/models(?:/{_ID})?{_query('after_id', 'before_id', 'limit', 'pageSize', 'pageToken')}")
)
_ANTHROPIC_QUERY = _query("beta")

ANTHROPIC = ModelApi(
    Dialect.ANTHROPIC,
    "/v1",
    "https://api.anthropic.com/v1",
    (
        _Operation("POST", re.compile(rf"/messages(?:/count_tokens)?{_ANTHROPIC_QUERY}"), check_messages),
        _LISTED,
    ),
)
_CHAT = _Operation("POST", re.compile("/chat/completions"), check_chat)
_RESPONSES = _Operation("POST", re.compile("/responses(?:/compact)?"), check_responses)
OPENAI = ModelApi(Dialect.OPENAI, "/v1", "https://api.openai.com/v1", (_RESPONSES, _CHAT, _LISTED))
OPENROUTER = ModelApi(Dialect.OPENAI, "/api/v1", "https://openrouter.ai/api/v1", (_CHAT, _LISTED))
_GENERATE = re.compile(rf"/models/(?P<model>{_ID}):(?:generateContent|streamGenerateContent){_query('alt')}")
GEMINI = ModelApi(
    Dialect.GEMINI,
    "/v1beta",
    "https://generativelanguage.googleapis.com/v1beta",
    (
        _Operation("POST", _GENERATE, check_generation),
        _Operation("POST", re.compile(rf"/models/(?P<model>{_ID}):countTokens"), check_count),
        _LISTED,
    ),
)


def error_body(dialect: Dialect, status: int, message: str) -> dict[str, Any]:
    """Returns an error as clients of the API read it."""
    kind = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}.get(status, "api_error")
    match dialect:
        case Dialect.ANTHROPIC:
            return {"type": "error", "error": {"type": kind, "message": message}}
        case Dialect.OPENAI:
            return {"error": {"message": message, "type": kind, "param": None, "code": "refused_by_pagehand"}}
        case Dialect.GEMINI:
            return {"error": {"code": status, "message": message, "status": kind.upper()}}


class KeyHeader(StrEnum):
    """Where an API expects its key."""

    ANTHROPIC = "x-api-key"
    BEARER = "authorization"
    GOOGLE = "x-goog-api-key"


def with_key(header: KeyHeader, key: str) -> dict[str, str]:
    """Returns the header that holds a key."""
    return {header.value: f"{_BEARER}{key}" if header is KeyHeader.BEARER else key}


def holds_token(headers: CIMultiDictProxy[str], token: str) -> bool:
    """Whether a request comes from whoever was given the token: every key that it holds is this one."""
    given = [value for header in KeyHeader for value in headers.getall(header.value, [])]
    # An agent may send its key in another header than its API's.
    keys = [value.removeprefix(_BEARER).strip().encode(errors="replace") for value in given]
    return bool(keys) and all(hmac.compare_digest(key, token.encode()) for key in keys)


def passed_on(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """Returns what of a request's headers the model gets: nothing about the connection, no key, no cookies."""
    return _filtered(headers, _SENT, _SENT_KINDS)


def answered(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Returns what of an answer's headers the agent gets."""
    return _filtered(headers, _ANSWERED, _ANSWERED_KINDS)


def _filtered(headers: Mapping[str, str], names: frozenset[str], kinds: tuple[str, ...]) -> CIMultiDict[str]:
    passes = (
        (name, value) for name, value in headers.items() if name.lower() in names or name.lower().startswith(kinds)
    )
    return CIMultiDict(passes)
