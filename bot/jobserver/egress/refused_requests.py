"""Refusals of model requests, with messages that the agent can act on."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

RELAY = "Pagehand's model relay"
"""The name of the relay in its messages."""
_SHOWN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,48}")


@dataclass(frozen=True)
class RefusedRequest:
    """`what` is short, for counting: a field, a tool, a path. `message` goes to the agent."""

    what: str
    message: str


Refusals = Iterator[RefusedRequest]
"""The faults of a request; the first one suffices."""


def shown(value: object) -> str:
    """Returns a foreign name if it may be shown, or a placeholder."""
    return value if isinstance(value, str) and _SHOWN.fullmatch(value) else "one without a readable name"


def refused(kind: str, name: object) -> RefusedRequest:
    """Refuses something that is not known to be harmless; `kind` is what it is, such as "field"."""
    what = shown(name)
    return RefusedRequest(
        what if what == name else f"a {kind}",
        f"{RELAY} refuses this request because of its {kind}: {what}. It allows only what is known to stay between you "
        "and the model: no searches, fetches, files, remote tools or programs at the model's provider.",
    )


def kind_of(value: object) -> str:
    """Returns the `type` of an object; empty if it has none, or an unreadable one."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) else ""


def as_list(value: object) -> list[Any]:
    """Returns a list unchanged, None as an empty list, and anything else as a list of one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def malformed(where: str) -> RefusedRequest:
    return RefusedRequest("malformed", f"{RELAY} refuses this request: {where} cannot be read.")


def check_blocks(content: object, check: Callable[[Mapping[str, Any]], Refusals]) -> Refusals:
    """Yields what is refused in a message's content: a text, or a list of blocks that `check` looks at."""
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        yield malformed("a content")
        return
    for block in content:
        yield from check(block) if isinstance(block, dict) else [malformed("a content")]


def fields(value: Mapping[str, Any], allowed: Collection[str]) -> Refusals:
    """Yields a refusal for each field that is not allowed and has a value."""
    for name, content in value.items():
        if name not in allowed and content is not None:
            yield refused("field", name)
