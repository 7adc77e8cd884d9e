"""Refusals of model requests, with messages that the agent can act on.

Vendors add fields and items all the time. What is new here passes if nothing in it can reach out, store or address
anything; tools pass only by name.
"""

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


@dataclass(frozen=True)
class Unfamiliar:
    """The name of something that is new here, and passes."""

    what: str


Refusals = Iterator[RefusedRequest | Unfamiliar]
"""The faults of a request, of which the first one suffices, and what is new in it."""


def spellings(*names: str) -> frozenset[str]:
    """Returns names in camel case and in snake case."""
    return frozenset({*names, *("".join(f"_{c.lower()}" if c.isupper() else c for c in name) for name in names)})


_REACHING = spellings(
    "audio", "background", "batch", "batchId", "cachedContent", "container", "containerId", "conversation",
    "conversationId", "fileId", "fileIds", "fileUri", "fileUrl", "mcpServers", "plugins", "previousResponseId",
    "serverUrl", "store", "vectorStoreIds", "webSearchOptions",
)  # fmt: skip
"""Fields that reach out, store something at the provider, or address what is stored there."""
_SUSPECT = re.compile(
    r"audio|background|batch|brows|cached|call(?:back|er)|connector|container|conversation|crawl|execut|fallback|fetch|file|"
    r"function|ground|interpreter|mcp|models?$|plugin|previous|reference|remote|retriev|search|server|store|tool|"
    r"ur[il]|webhook",
    re.IGNORECASE,
)
"""In the name or type of something new: it may be more than an option."""
_ADDRESS = re.compile(r"(?:\A|[a-z0-9]:)//|\Awww\.|\Afile[-_s/]|\A(?:blob|data|gs|s3):", re.IGNORECASE)
_WORDS = frozenset({"encrypted_content", "text"})
"""Fields of something new whose text is for the model."""


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


def fields(value: Mapping[str, Any], known: Collection[str]) -> Refusals:
    """Yields the fields that are not known: refused, or unfamiliar."""
    for name, content in value.items():
        if name not in known and not _is_off(content):
            yield unfamiliar("field", name, {name: content})


def only_fields(value: Mapping[str, Any], allowed: Collection[str]) -> Refusals:
    """Yields a refusal for each field that is not allowed, even if it is empty."""
    yield from (
        refused("field", name) for name, content in value.items() if name not in allowed and content is not None
    )


def unfamiliar(kind: str, name: object, value: object) -> RefusedRequest | Unfamiliar:
    """Refuses something new if anything in it could be an address, a stored file or a tool."""
    return refused(kind, name) if any(map(_is_suspect, _members(value, _WORDS))) else Unfamiliar(shown(name))


def anywhere(body: object, opaque: Collection[str], tool: Callable[[object], Refusals]) -> Refusals:
    """Yields what is refused wherever it stands: fields that reach out, and tools.

    Args:
        body: A request, or a part of it.
        opaque: The names of fields whose content the provider does not interpret, such as a tool's input.
        tool: Yields the refusals of a tool.
    """
    for name, content in _members(body, opaque):
        if name == "tools":
            for each in as_list(content):
                yield from tool(each)
        elif name in _REACHING and not _is_off(content):
            yield refused("field", name)


def _members(value: object, opaque: Collection[str]) -> Iterator[tuple[str, object]]:
    """Yields the fields at every depth, except those inside opaque ones; list items as fields without a name."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        pairs = inner.items() if isinstance(inner, dict) else [("", each) for each in as_list(inner)]
        for name, content in pairs:
            if name in opaque:
                continue
            yield name, content
            if isinstance(content, dict | list):
                waiting.append(content)


def _is_suspect(member: tuple[str, object]) -> bool:
    name, content = member
    if _is_off(content):
        return False
    names_something = _SUSPECT.search(name) or (
        name == "type" and isinstance(content, str) and _SUSPECT.search(content)
    )
    return bool(names_something or (isinstance(content, str) and _ADDRESS.search(content)))


def _is_off(content: object) -> bool:
    """An empty object is not: `web_search_options: {}` turns the search on."""
    return content is None or content is False or content in ("", [])
