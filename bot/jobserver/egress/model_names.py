"""Which models an agent may ask: the one that the setting names, and the small ones that go with its program."""

import re
from dataclasses import dataclass

from bot.jobserver.egress.refused_requests import RELAY, RefusedRequest, shown
from bot.jobserver.settings.values import PREFIX

_ACTS_BY_ITSELF = re.compile(r"search|research|computer-use|sonar|:online|grounded", re.IGNORECASE)
"""Models that search or browse at their provider without any tool being named."""
_SETTING = f"{PREFIX}MODEL"
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
        if self.setting is not None:
            return RefusedRequest(
                shown(name), f"{RELAY} refuses the model {shown(name)}: {_SETTING} names another one."
            )
        if _ACTS_BY_ITSELF.search(name):
            words = f"{RELAY} refuses the model {shown(name)}, which may search by itself, unless {_SETTING} names it."
            return RefusedRequest(shown(name), words)
        return None

    def _is_set(self, name: str) -> bool:
        """Agents leave out the provider of `provider/model`, and know families of models by one word."""
        if self.setting is None:
            return False
        wanted = _LONG_CONTEXT.sub("", self.setting).removeprefix("models/")
        if wanted in _FAMILIES:
            return name.startswith("claude-") and wanted in name.split("-")
        return name in {wanted, wanted.partition("/")[2]}
