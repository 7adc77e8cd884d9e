"""Finds out whether workflows of GitHub Actions, Gitea and Forgejo start when a branch is pushed. Pure.

Source: GitHub's documentation, "Workflow syntax: on" and its "Filter pattern cheat sheet".
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.jobserver.documents.yaml_text import load_yaml

_MAX_LENGTH = 200_000
_MAX_WILDCARDS = 10
"""Patterns with more wildcards are assumed to match."""
_LARGEST_SET = 1_000
_WILDCARD = re.compile(r"\*+|[?+]")
_PART = re.compile(r"\*+|\[[^\[\]]{1,40}+\]|\\.|.", re.DOTALL)
_RANGE = re.compile(r"(?:(.)(?!-.)|(.)-(.))", re.DOTALL)
_AT_CREATION = frozenset({"create", "delete"})


def starts_at_push(text: str, branch: str) -> bool:
    """Tells whether a workflow starts when this branch is pushed, created or deleted, whichever files change.

    Raises:
        ValueError: the workflow cannot be read; the message says why.
    """
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"it is longer than {_MAX_LENGTH} characters")
    workflow = load_yaml(text)
    if not isinstance(workflow, dict):
        raise ValueError("it is not a list of keys with values")  # noqa: TRY004 (of the text, not of an argument)
    events = _events(workflow.get("on", workflow.get(True)))  # YAML 1.1 reads `on` as true
    if _AT_CREATION.intersection(events):
        return True
    return "push" in events and _takes(events["push"], branch)


def _events(on: object) -> Mapping[str, object]:
    if isinstance(on, dict):
        return {str(name): filters for name, filters in on.items()}
    return dict.fromkeys(map(str, on) if isinstance(on, list) else [str(on)])


def _takes(filters: object, branch: str) -> bool:
    given = filters if isinstance(filters, dict) else {}
    if "branches" in given:
        return _is_among(_patterns(given["branches"]), branch)
    if "branches-ignore" in given:
        return not _is_among(_patterns(given["branches-ignore"]), branch)
    return not {"tags", "tags-ignore"}.intersection(given)


def _patterns(value: object) -> Sequence[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _is_among(patterns: Sequence[str], branch: str) -> bool:
    """The last matching pattern decides."""
    is_among = False
    for pattern in patterns:
        if _fits(pattern.removeprefix("!"), branch):
            is_among = not pattern.startswith("!")
    return is_among


@dataclass(frozen=True)
class _Token:
    """A part of a pattern: which characters it matches, and whether it is optional and may repeat."""

    takes: Callable[[str], bool]
    is_optional: bool = False
    is_repeated: bool = False


def _fits(pattern: str, branch: str) -> bool:
    """Tells whether a pattern matches; assumes so if it cannot be parsed."""
    if len(_WILDCARD.findall(pattern)) > _MAX_WILDCARDS:
        return True
    try:
        tokens = _tokens(pattern)
    except ValueError:
        return True
    at = _with_left_out(tokens, {0})
    for character in branch:
        taken = {place for place in at if place < len(tokens) and tokens[place].takes(character)}
        stays = {place for place in taken if tokens[place].is_repeated}
        at = _with_left_out(tokens, stays | {place + 1 for place in taken})
    return len(tokens) in at


def _with_left_out(tokens: Sequence[_Token], places: set[int]) -> set[int]:
    found = set(places)
    for place, token in enumerate(tokens):
        if place in found and token.is_optional:
            found.add(place + 1)
    return found


def _tokens(pattern: str) -> Sequence[_Token]:
    """Parses a pattern; `?` and `+` apply to the character before. Raises ValueError for an invalid one."""
    made: list[_Token] = []
    for part in _PART.findall(pattern):
        if part.startswith("*"):
            made.append(_Token(_not_a_slash if part == "*" else _anything, is_optional=True, is_repeated=True))
        elif part in {"?", "+"}:
            before = made.pop() if made else None
            if before is None:
                raise ValueError("nothing precedes it")
            again = replace(before, is_optional=True, is_repeated=True)
            made += [replace(before, is_optional=True)] if part == "?" else [before, again]
        elif part.startswith("[") and part != "[":
            made.append(_Token(_set_of(part[1:-1]).__contains__))
        else:
            made.append(_Token(part.removeprefix("\\").__eq__))
    return made


def _set_of(text: str) -> frozenset[str]:
    """Returns the characters in a set such as `a-z0-9_`. Raises ValueError for an invalid one."""
    found: set[str] = set()
    for single, first, last in _RANGE.findall(text):
        if first > last or ord(last or "a") - ord(first or "a") > _LARGEST_SET:
            raise ValueError("it is not a range")
        found |= {single} if single else set(map(chr, range(ord(first), ord(last) + 1)))
    if not found or text.startswith("^"):
        raise ValueError("it is not a set of characters")
    return frozenset(found)


def _not_a_slash(character: str) -> bool:
    return character != "/"


def _anything(_: str) -> bool:
    return True
