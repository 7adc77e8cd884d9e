"""The supported model APIs: their addresses, and the requests and headers that agents need."""

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
_REQUEST_HEADERS = frozenset({
    "accept", "agent-session-id", "anthropic-beta", "anthropic-dangerous-direct-browser-access", "anthropic-version",
    "content-type", "conversation_id", "http-referer", "openai-beta", "originator", "session-id", "session_id",
    "thread-id", "user-agent", "x-app", "x-client-request-id", "x-goog-api-client", "x-initiator",
    "x-session-affinity", "x-session-id", "x-title",
})  # fmt: skip
_REQUEST_PREFIXES = ("x-claude-code-", "x-codex-", "x-stainless-")
_RESPONSE_HEADERS = frozenset({
    "cache-control", "content-type", "openai-processing-ms", "openai-version", "request-id", "retry-after",
    "retry-after-ms", "x-request-id", "x-should-retry",
})  # fmt: skip
_RESPONSE_PREFIXES = ("anthropic-ratelimit-", "x-codex-", "x-ratelimit-")
_BEARER = "Bearer "


def _query(*names: str) -> str:
    pair = rf"(?:{'|'.join(names)})={_QUERY_VALUE}"
    return rf"(?:\?{pair}(?:&{pair}){{0,5}})?"


@dataclass(frozen=True)
class _Operation:
    """`pattern` matches the whole request target after the API's prefix. Without `check`, there is no body."""

    method: str
    pattern: re.Pattern[str]
    check: BodyCheck | None = None


@dataclass(frozen=True)
class Route:
    """A permitted request. `target` is the part after the API's prefix, `model` the model that it names."""

    target: str
    check: BodyCheck | None
    model: str | None = None


class Dialect(StrEnum):
    """Whose error format is used."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    GEMINI = "gemini"


@dataclass(frozen=True)
class ModelApi:
    """An API: its paths begin with `prefix` at the relay, and with `address` at its provider."""

    dialect: Dialect
    prefix: str
    address: str
    operations: tuple[_Operation, ...] = field(repr=False)

    def route(self, method: str, target: str) -> Route | RefusedRequest:
        """Returns the route of a request, or why it is refused. `target` must be exactly as it was sent."""
        rest = target.removeprefix(self.prefix)
        for operation in self.operations if rest != target else ():
            if operation.method == method and (found := operation.pattern.fullmatch(rest)):
                return Route(rest, operation.check, found.groupdict().get("model"))
        words = (
            f"{RELAY} refuses this: it allows only what {self.dialect}'s API needs for a conversation, "
            "and no other method, path or parameter."
        )
        return RefusedRequest("a path that is not the model's API", words)


_LIST_MODELS = _Operation(
    "GET", re.compile(rf"/models(?:/{_ID})?{_query('after_id', 'before_id', 'limit', 'pageSize', 'pageToken')}")
)
_ANTHROPIC_QUERY = _query("beta")

ANTHROPIC = ModelApi(
    Dialect.ANTHROPIC,
    "/v1",
    "https://api.anthropic.com/v1",
    (
        _Operation("POST", re.compile(rf"/messages(?:/count_tokens)?{_ANTHROPIC_QUERY}"), check_messages),
        _LIST_MODELS,
    ),
)
_CHAT = _Operation("POST", re.compile("/chat/completions"), check_chat)
_RESPONSES = _Operation("POST", re.compile("/responses(?:/compact)?"), check_responses)
OPENAI = ModelApi(Dialect.OPENAI, "/v1", "https://api.openai.com/v1", (_RESPONSES, _CHAT, _LIST_MODELS))
OPENROUTER = ModelApi(Dialect.OPENAI, "/api/v1", "https://openrouter.ai/api/v1", (_CHAT, _LIST_MODELS))
_GENERATE = re.compile(rf"/models/(?P<model>{_ID}):(?:generateContent|streamGenerateContent){_query('alt')}")
GEMINI = ModelApi(
    Dialect.GEMINI,
    "/v1beta",
    "https://generativelanguage.googleapis.com/v1beta",
    (
        _Operation("POST", _GENERATE, check_generation),
        _Operation("POST", re.compile(rf"/models/(?P<model>{_ID}):countTokens"), check_count),
        _LIST_MODELS,
    ),
)


def error_body(dialect: Dialect, status: int, message: str) -> dict[str, Any]:
    """Returns an error in the format of the API."""
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
    """Returns the header with a key."""
    return {header.value: f"{_BEARER}{key}" if header is KeyHeader.BEARER else key}


def holds_token(headers: CIMultiDictProxy[str], token: str) -> bool:
    """Whether a request has the token: every key in it must be this one."""
    given = [value for header in KeyHeader for value in headers.getall(header.value, [])]
    # An agent may send its key in a different header than its API's.
    keys = [value.removeprefix(_BEARER).strip().encode(errors="replace") for value in given]
    return bool(keys) and all(hmac.compare_digest(key, token.encode()) for key in keys)


def request_headers(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """Returns the request headers to pass on to the model: no connection headers, keys or cookies."""
    return _filtered(headers, _REQUEST_HEADERS, _REQUEST_PREFIXES)


def response_headers(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Returns the response headers to pass on to the agent."""
    return _filtered(headers, _RESPONSE_HEADERS, _RESPONSE_PREFIXES)


def _filtered(headers: Mapping[str, str], names: frozenset[str], kinds: tuple[str, ...]) -> CIMultiDict[str]:
    passes = (
        (name, value) for name, value in headers.items() if name.lower() in names or name.lower().startswith(kinds)
    )
    return CIMultiDict(passes)
