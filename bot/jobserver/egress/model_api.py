"""What a model API is, and which of its requests and headers pass the relay. Each provider's is data, in its module."""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from bot.jobserver.egress.request_rules import RELAY, RefusedRequest, Shapes

MODEL_ID = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
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
BEARER = "authorization"
_BEARER_PREFIX = "Bearer "
_KEY_HEADERS = (BEARER, "x-api-key", "x-goog-api-key")
_ERROR_KINDS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}


def query(*names: str) -> str:
    """Returns a pattern for up to six of these parameters."""
    pair = rf"(?:{'|'.join(names)})={_QUERY_VALUE}"
    return rf"(?:\?{pair}(?:&{pair}){{0,5}})?"


_LIST_MODELS = re.compile(rf"/models(?:/{MODEL_ID})?{query('after_id', 'before_id', 'limit', 'pageSize', 'pageToken')}")


@dataclass(frozen=True)
class Route:
    """A permitted request: its `target` after the API's prefix, its body's shape, and the model that the target names.

    Without a shape, it has no body.
    """

    target: str
    shape: str | None
    model: str | None = None


@dataclass(frozen=True)
class ModelApi:
    """A provider's API. Its paths begin with `prefix` at the relay, and with `address` at the provider.

    `header` holds the key. Programs that use the provider's own libraries find key and address in the two variables,
    the address with `suffix`; `account_headers` go with each request if the variables are set. `requests` are the names
    of their `shapes`, by patterns of the path after the prefix; the content of `opaque` fields is not interpreted by
    the provider. `companions` are small models that belong to its agent. `ends` matches in the last event of a complete
    answer (the model's own quotes are escaped); the usage's fields `sent` and `answered` add up to its tokens.
    """

    name: str
    prefix: str
    address: str
    header: str
    key_variable: str
    address_variable: str
    requests: Mapping[str, str] = field(repr=False)
    shapes: Shapes = field(repr=False)
    opaque: frozenset[str] = field(repr=False)
    ends: re.Pattern[bytes] = field(repr=False)
    sent: tuple[str, ...] = field(repr=False)
    answered: tuple[str, ...] = field(repr=False)
    suffix: str = ""
    account_headers: Mapping[str, str] = field(default_factory=dict)
    companions: re.Pattern[str] | None = None

    def route(self, method: str, target: str) -> Route | RefusedRequest:
        """Returns the route of a request, or why it is refused. `target` must be exactly as it was sent."""
        rest = target.removeprefix(self.prefix)
        if method == "GET" and rest != target and _LIST_MODELS.fullmatch(rest):
            return Route(rest, None)
        for pattern, shape in self.requests.items() if method == "POST" and rest != target else ():
            if found := re.fullmatch(pattern, rest):
                return Route(rest, shape, found.groupdict().get("model"))
        words = (
            f"{RELAY} refuses this: it allows only what {self.name}'s API needs for a conversation, "
            "and no other method, path or parameter."
        )
        return RefusedRequest("a path that is not the model's API", words)


def error_body(status: int, message: str) -> dict[str, Any]:
    """Returns an error in which the clients of all APIs find its message."""
    kind = _ERROR_KINDS.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message, "status": kind.upper()}}


def with_key(header: str, key: str) -> dict[str, str]:
    """Returns the header with a key."""
    return {header: f"{_BEARER_PREFIX}{key}" if header == BEARER else key}


def holds_token(headers: CIMultiDictProxy[str], token: str, header: str) -> bool:
    """Whether a request has the token: every key in it must be this one. `header`: where its model expects the key."""
    # An agent may send its key in a different header than its API's.
    given = [value for name in {*_KEY_HEADERS, header} for value in headers.getall(name, [])]
    keys = [value.removeprefix(_BEARER_PREFIX).strip().encode(errors="replace") for value in given]
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
