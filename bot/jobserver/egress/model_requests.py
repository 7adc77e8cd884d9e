"""What of a request passes the model relay: decided on its method, target, headers and body, without a connection."""

from collections.abc import Mapping
from dataclasses import dataclass

from multidict import CIMultiDictProxy

from bot.jobserver.egress.model_apis import ModelApi, Route
from bot.jobserver.egress.model_names import ModelNames
from bot.jobserver.egress.refused_requests import RELAY, Refusals, RefusedRequest
from bot.jobserver.egress.strict_json import parse_object

_SINGLE = ("content-length", "content-type", "host", "transfer-encoding")
_JSON = ("application/json", "application/json;charset=utf-8")


@dataclass(frozen=True)
class RequestPolicy:
    """What an agent may ask, of which API and which models."""

    api: ModelApi
    names: ModelNames

    def route(self, method: str, target: str, headers: CIMultiDictProxy[str]) -> Route | RefusedRequest:
        """Returns what is asked for, or why it is refused; the body is looked at later."""
        found = self.api.route(method, target)
        if isinstance(found, RefusedRequest):
            return found
        if any(len(headers.getall(name, ())) > 1 for name in _SINGLE):
            return _refused_form("a header that must stand once stands twice")
        if "upgrade" in headers:
            return RefusedRequest("websocket", f"{RELAY} refuses this: use HTTP, not WebSocket.")
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            return _refused_form("its body must not be compressed")
        kind = headers.get("content-type", "").replace(" ", "").lower()
        if found.check is not None and kind not in _JSON:
            return _refused_form("its body must be application/json")
        return found

    def body_refusal(self, route: Route, body: bytes) -> RefusedRequest | None:
        """Returns why a body is refused; None where it may pass."""
        if route.check is None:
            return _refused_form("it must not have a body") if body else None
        try:
            value = parse_object(body)
        except ValueError as error:
            return _refused_form(str(error))
        return next(self._refusals(route, value), None)

    def _refusals(self, route: Route, body: Mapping[str, object]) -> Refusals:
        if route.check is not None:
            yield from route.check(body)
        told = body.get("model")
        for model in [told] if route.model is None else [route.model] if told is None else [route.model, told]:
            if (found := self.names.refusal(model)) is not None:
                yield found


def _refused_form(why: str) -> RefusedRequest:
    return RefusedRequest("malformed", f"{RELAY} refuses this request: {why}.")
