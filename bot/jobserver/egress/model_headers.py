"""Which headers pass between an agent and its model, and where the key stands in them."""

import hmac
from collections.abc import Mapping
from enum import StrEnum

from multidict import CIMultiDict, CIMultiDictProxy

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
