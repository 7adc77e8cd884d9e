"""Why a request for a model is refused, in words that its agent can act on."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

RELAY = "Pagehand's model relay"
"""What all its words name."""
_SHOWN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,48}")


@dataclass(frozen=True)
class RefusedRequest:
    """`what` is short, for the count of what was refused: a field, a tool, a path. `words` go to the agent."""

    what: str
    words: str


Refusals = Iterator[RefusedRequest]
"""What is wrong with a request; the first one is enough."""


def shown(value: object) -> str:
    """Returns a foreign name as it may be shown, or that it may not."""
    return value if isinstance(value, str) and _SHOWN.fullmatch(value) else "one without a readable name"


def refused(kind: str, name: object) -> RefusedRequest:
    """Returns the refusal of something that is not known to be harmless; `kind` is what it is, such as "field"."""
    what = shown(name)
    return RefusedRequest(
        what if what == name else f"a {kind}",
        f"{RELAY} refuses this request, for its {kind}: {what}. Only what is known to stay between you "
        "and the model is let through: no searches, fetches, files, remote tools or programs at the model's provider.",
    )


def kind_of(value: object) -> str:
    """Returns what the `type` of an object says; empty where it says nothing, or nothing readable."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) else ""


def as_list(value: object) -> list[Any]:
    """Returns a list as it is, nothing as an empty one, and anything else as its only member."""
    return value if isinstance(value, list) else [] if value is None else [value]


def malformed(where: str) -> RefusedRequest:
    return RefusedRequest("malformed", f"{RELAY} refuses this request: {where} cannot be read.")


def fields(value: Mapping[str, Any], allowed: Collection[str]) -> Refusals:
    """Yields the refusal of each field that is not allowed. One without a value says nothing."""
    for name, content in value.items():
        if name not in allowed and content is not None:
            yield refused("field", name)
