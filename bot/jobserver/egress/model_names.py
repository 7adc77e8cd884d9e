"""Which models an agent may ask: the one that the setting names, and the small ones that go with its program."""

import re
from dataclasses import dataclass

from bot.jobserver.egress.refused_requests import RELAY, RefusedRequest, refused

_ACTS_BY_ITSELF = re.compile(r"search|research|computer-use|sonar|:online|grounded", re.IGNORECASE)
"""Models that search or browse at their provider without any tool being named."""
_FAMILIES = ("fable", "haiku", "opus", "sonnet")
_LONG_CONTEXT = re.compile(r"\[\d+m\]\Z", re.IGNORECASE)


@dataclass(frozen=True)
class ModelNames:
    """`setting` is what whoever runs the server has set, in the agent's own words; `companions` matches other names."""

    setting: str | None = None
    companions: re.Pattern[str] | None = None

    def refusal(self, model: object) -> RefusedRequest | None:
        """Returns why a request must not ask this model; None where it may."""
        if not isinstance(model, str) or not model:
            return RefusedRequest("a request without a model", f"{RELAY} refuses this: it names no model.")
        name = model.removeprefix("models/")
        if self._is_set(name) or (self.companions is not None and self.companions.fullmatch(name)):
            return None
        return refused("model", name) if self.setting is not None or _ACTS_BY_ITSELF.search(name) else None

    def _is_set(self, name: str) -> bool:
        """Agents leave out the provider of `provider/model`, and know families of models by one word."""
        if self.setting is None:
            return False
        wanted = _LONG_CONTEXT.sub("", self.setting).removeprefix("models/")
        if wanted in _FAMILIES:
            return name.startswith("claude-") and wanted in name.split("-")
        return name in {wanted, wanted.partition("/")[2]}
