"""What passes in a model request: the language in which each provider's rules are written, and what applies to all.

A refusal's message is for the agent. Providers add fields and items all the time. What is new here passes if nothing in
it can reach out, store or address anything; tools pass only by name.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, assert_never

from bot.runtime.untrusted_json import text_at

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


@dataclass(frozen=True)
class Fields:
    """An object. `known` are its fields, or None for any; those of `inside` have the shapes of these names.

    An unknown field is refused if the object `is_closed`, even if it is empty.
    """

    known: frozenset[str] | None
    inside: Mapping[str, str] = field(default_factory=dict)
    is_closed: bool = False
    may_be_text: bool = False


ANYTHING = Fields(None)


@dataclass(frozen=True)
class Kinds:
    """An object by its `type`, which a pattern without groups matches; `what` it is, in refusals.

    An unknown type is refused if the kinds are `is_closed`.
    """

    what: str
    kinds: Mapping[str, Fields]
    untyped: Fields | None = None
    is_closed: bool = False
    may_be_text: bool = False

    @cached_property
    def _known(self) -> tuple[re.Pattern[str], tuple[Fields, ...]]:
        return re.compile("|".join(f"({pattern})" for pattern in self.kinds)), tuple(self.kinds.values())

    def of(self, kind: str) -> Fields | None:
        """Returns the shape of a type."""
        pattern, shapes = self._known
        found = pattern.fullmatch(kind)
        return shapes[found.lastindex - 1] if found and found.lastindex else None


@dataclass(frozen=True)
class Values:
    """One of some values; None is a missing one."""

    what: str
    allowed: tuple[str | None, ...]


@dataclass(frozen=True)
class InlineData:
    """A `data:` URL, alone or as an object's `url`; any other would be fetched by the provider."""


Shapes = Mapping[str, Fields | Kinds | Values | InlineData]
"""By name; each is for a value or for each of a list. The one named "tool" is that of all `tools`."""


def names(text: str) -> frozenset[str]:
    """Returns the words of a text, those in camel case also in snake case."""
    words = text.split()
    return frozenset({*words, *("".join(f"_{c.lower()}" if c.isupper() else c for c in word) for word in words)})


def fields(known: str, *, is_closed: bool = False, may_be_text: bool = False, **inside: str) -> Fields:
    """Returns an object with these fields, in both spellings, and those of `inside`."""
    found = within(**inside).inside
    return Fields(names(known) | found.keys(), found, is_closed, may_be_text)


def within(**inside: str) -> Fields:
    """Returns an object with any fields, of which some have shapes."""
    return Fields(None, {spelled: shape for name, shape in inside.items() for spelled in names(name)})


_REACHING = names(
    "audio background batch batchId cachedContent container containerId conversation conversationId fileId fileIds "
    "fileUri fileUrl mcpServers plugins previousResponseId serverUrl store vectorStoreIds webSearchOptions"
)
"""Fields that reach out, store something at the provider, or address what is stored there."""
_SUSPECT = re.compile(
    r"audio|background|batch|brows|cached|call(?:back|er)|connector|container|conversation|crawl|execut|fallback|fetch|file|"
    r"function|ground|interpreter|mcp|models?$|plugin|previous|\Aprompt\Z|reference|remote|retriev|search|server|store|"
    r"tool|ur[il]|webhook",
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


def as_list(value: object) -> list[Any]:
    """Returns a list unchanged, None as an empty list, and anything else as a list of one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def malformed(where: str) -> RefusedRequest:
    return RefusedRequest("malformed", f"{RELAY} refuses this request: {where} cannot be read.")


def check(body: Mapping[str, Any], shape: str, shapes: Shapes, opaque: Collection[str]) -> Refusals:
    """Yields what is refused in a body, and what is new in it.

    Args:
        body: The request.
        shape: The name of its shape.
        shapes: The API's.
        opaque: The names of fields whose content the provider does not interpret, such as a tool's input.
    """
    yield from _shaped(body, shape, shapes)
    for name, content in _members(body, opaque):
        if name == "tools":
            yield from _shaped(content, "tool", shapes)
        elif name in _REACHING and not _is_off(content):
            yield refused("field", name)


def _shaped(value: object, name: str, shapes: Shapes) -> Refusals:
    match shapes[name]:
        case Values(what, allowed):
            yield from (refused(what, each) for each in as_list(value) or [None] if each not in allowed)
        case InlineData():
            address = value.get("url") if isinstance(value, dict) else value
            if address is not None and not (isinstance(address, str) and address.startswith("data:")):
                yield refused("content", "url")
        case Fields() | Kinds() as shape:
            for each in as_list(value):
                if isinstance(each, dict):
                    yield from _object(each, shape, shapes)
                elif not (shape.may_be_text and isinstance(each, str)):
                    yield malformed(f"its {name}")
        case unreachable:
            assert_never(unreachable)


def _object(value: Mapping[str, Any], shape: Fields | Kinds, shapes: Shapes) -> Refusals:
    if isinstance(shape, Kinds):
        kind = text_at(value, "type")
        found = shape.untyped if value.get("type") is None else shape.of(kind)
        if found is None:
            yield refused(shape.what, kind) if shape.is_closed else unfamiliar(shape.what, kind, value)
            return
        shape = found
    known = value if shape.known is None else shape.known
    for name, content in value.items():
        if name in known:
            continue
        if shape.is_closed and content is not None:
            yield refused("field", name)
        elif not _is_off(content):
            yield unfamiliar("field", name, {name: content})
    for name, inner in shape.inside.items():
        yield from _shaped(value.get(name), inner, shapes)


def unfamiliar(kind: str, name: object, value: object) -> RefusedRequest | Unfamiliar:
    """Refuses something new if anything in it could be an address, a stored file or a tool."""
    return refused(kind, name) if any(map(_is_suspect, _members(value, _WORDS))) else Unfamiliar(shown(name))


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
