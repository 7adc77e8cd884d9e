"""What a model API is, and which of its requests and headers pass the relay, by method, target, headers and body."""

import hmac
import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from bot.jobserver.egress.request_rules import RELAY, Refusals, RefusedRequest, Shapes, Unfamiliar, check, shown
from bot.jobserver.settings.values import PREFIX

logger = logging.getLogger(__name__)

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
MOST_VALUES = 1_000_000
"""Objects, lists and members per body: each costs memory, however few bytes it has."""
_COUNTED = (b",", b"{", b"[")
_MOST_LOGGED = 100
"""Names of a run that are logged; an agent could make up any number."""
_SEARCHES_ON_ITS_OWN = re.compile(r"search|research|computer-use|sonar|:online|grounded", re.IGNORECASE)
"""Models that search or browse at their provider without being given a tool."""
_SETTING = f"{PREFIX}MODEL"
_FAMILIES = ("fable", "haiku", "opus", "sonnet")
_LONG_CONTEXT = re.compile(r"\[\d+m\]\Z", re.IGNORECASE)
_SINGLE = ("content-length", "content-type", "host", "transfer-encoding")
_JSON = ("application/json", "application/json;charset=utf-8")


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


def parse_object(body: bytes) -> Mapping[str, Any]:
    """Parses a body that every parser reads the same way.

    Otherwise, the check and the provider could see two different things.

    Raises:
        ValueError: it is not a JSON object in UTF-8, is nested too deeply, has too many values, a duplicate name in an
            object, or a number that is not JSON. The message is for the sender.
    """
    if sum(map(body.count, _COUNTED)) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")
    try:
        value = json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise ValueError("it is not in UTF-8") from None
    except json.JSONDecodeError:
        raise ValueError("it is not JSON") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - one error for all faults of a body
    return value


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a duplicate name")
    return found


def _no_constant(_: str) -> None:
    raise ValueError("it contains a number that is not JSON")


@dataclass(frozen=True)
class RequestPolicy:
    """What an agent may request from an API. `model`: the setting, in the agent's own notation; `choices`: those that
    may take its place, of which a session has perhaps used each.
    """

    api: ModelApi
    model: str | None = None
    choices: Collection[str] = ()
    _logged: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def route(self, method: str, target: str, headers: CIMultiDictProxy[str]) -> Route | RefusedRequest:
        """Returns the route, or why it is refused; the body is checked later."""
        found = self.api.route(method, target)
        if isinstance(found, RefusedRequest):
            return found
        if any(len(headers.getall(name, ())) > 1 for name in _SINGLE):
            return _refused_form("a header that must be unique occurs twice")
        if "upgrade" in headers:
            return RefusedRequest("websocket", f"{RELAY} refuses this: use HTTP, not WebSocket.")
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            return _refused_form("its body must not be compressed")
        kind = headers.get("content-type", "").replace(" ", "").lower()
        if found.shape is not None and kind not in _JSON:
            return _refused_form("its body must be application/json")
        return found

    def body_refusal(self, route: Route, body: bytes) -> RefusedRequest | None:
        """Returns why a body is refused, or None."""
        if route.shape is None:
            return _refused_form("it must not have a body") if body else None
        try:
            value = parse_object(body)
        except ValueError as error:
            return _refused_form(str(error))
        try:
            for found in self._refusals(route, route.shape, value):
                if isinstance(found, RefusedRequest):
                    return found
                self._log_once(found)
        except RecursionError:
            return _refused_form("it is nested too deeply")
        return None

    def _log_once(self, found: Unfamiliar) -> None:
        if found.what not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(found.what)
            logger.info("model relay: passed on what it does not know: %s", found.what)

    def _refusals(self, route: Route, shape: str, body: Mapping[str, object]) -> Refusals:
        yield from check(body, shape, self.api.shapes, self.api.opaque)
        in_body = body.get("model")
        for model in [in_body] if route.model is None else [route.model] if in_body is None else [route.model, in_body]:
            if (found := self.model_refusal(model)) is not None:
                yield found

    def model_refusal(self, model: object) -> RefusedRequest | None:
        """Returns why a request must not use this model, or None."""
        if not isinstance(model, str) or not model:
            return RefusedRequest("a request without a model", f"{RELAY} refuses this: it names no model.")
        name, companions = model.removeprefix("models/"), self.api.companions
        is_set = any(_is_named(name, setting) for setting in (self.model, *self.choices) if setting is not None)
        if is_set or (companions is not None and companions.fullmatch(name)):
            return None
        if self.model is not None:
            words = f"{RELAY} refuses the model {shown(name)}: {_SETTING} names another one."
        elif _SEARCHES_ON_ITS_OWN.search(name):
            words = f"{RELAY} refuses the model {shown(name)}, which may search on its own, unless {_SETTING} names it."
        else:
            return None
        return RefusedRequest(shown(name), words)


def _is_named(name: str, setting: str) -> bool:
    """Compares names; agents may omit the provider of `provider/model`, and name families of models by one word."""
    wanted = _LONG_CONTEXT.sub("", setting).removeprefix("models/")
    if wanted in _FAMILIES:
        return name.startswith("claude-") and wanted in name.split("-")
    return name in {wanted, wanted.partition("/")[2]}


def _refused_form(why: str) -> RefusedRequest:
    return RefusedRequest("malformed", f"{RELAY} refuses this request: {why}.")
