"""Decides which requests pass the model relay, by method, target, headers and body."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDictProxy

from bot.jobserver.egress.model_api import ModelApi, Route
from bot.jobserver.egress.request_rules import RELAY, Refusals, RefusedRequest, Unfamiliar, check, shown
from bot.jobserver.settings.values import PREFIX

logger = logging.getLogger(__name__)

MOST_VALUES = 1_000_000
"""Objects, lists and members per body: each costs memory, however few bytes it has."""
_COUNTED = (b",", b"{", b"[")
_MOST_LOGGED = 100
"""Names of what is new: an agent could make up any number."""
_SEARCHES_ON_ITS_OWN = re.compile(r"search|research|computer-use|sonar|:online|grounded", re.IGNORECASE)
"""Models that search or browse at their provider without being given a tool."""
_SETTING = f"{PREFIX}MODEL"
_FAMILIES = ("fable", "haiku", "opus", "sonnet")
_LONG_CONTEXT = re.compile(r"\[\d+m\]\Z", re.IGNORECASE)
_SINGLE = ("content-length", "content-type", "host", "transfer-encoding")
_JSON = ("application/json", "application/json;charset=utf-8")


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
    """What an agent may request from an API. `model`: the setting, in the agent's own notation."""

    api: ModelApi
    model: str | None = None
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
        if self._is_set(name) or (companions is not None and companions.fullmatch(name)):
            return None
        if self.model is not None:
            words = f"{RELAY} refuses the model {shown(name)}: {_SETTING} names another one."
        elif _SEARCHES_ON_ITS_OWN.search(name):
            words = f"{RELAY} refuses the model {shown(name)}, which may search on its own, unless {_SETTING} names it."
        else:
            return None
        return RefusedRequest(shown(name), words)

    def _is_set(self, name: str) -> bool:
        """Compares names; agents may omit the provider of `provider/model`, and name families of models by one word."""
        if self.model is None:
            return False
        wanted = _LONG_CONTEXT.sub("", self.model).removeprefix("models/")
        if wanted in _FAMILIES:
            return name.startswith("claude-") and wanted in name.split("-")
        return name in {wanted, wanted.partition("/")[2]}


def _refused_form(why: str) -> RefusedRequest:
    return RefusedRequest("malformed", f"{RELAY} refuses this request: {why}.")
