"""Finds out whether workflows of GitHub Actions, Gitea and Forgejo start when a branch is pushed. Pure.

Source: GitHub's documentation, "Workflow syntax: on" and its "Filter pattern cheat sheet".
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from bot.jobserver.documents.yaml_text import load_yaml

_MAX_LENGTH = 200_000
_MAX_WILDCARDS = 5
"""Patterns with more wildcards, which could take long, are assumed to match."""
_WILDCARD = re.compile(r"\*+|[?+]")
_PART = re.compile(r"\*+|\[[^\[\]]{1,40}+\]|\\.|.", re.DOTALL)
_SET = re.compile(r"\[\w(?:[\w.]|-(?!-)){0,40}\]")
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


def _fits(pattern: str, branch: str) -> bool:
    """Tells whether a pattern matches; assumes so if it cannot be parsed."""
    if len(_WILDCARD.findall(pattern)) > _MAX_WILDCARDS:
        return True
    try:
        expression = "".join(_expressions(pattern))
        return re.fullmatch(f"(?s:{expression})", branch) is not None
    except (ValueError, re.error):
        return True


def _expressions(pattern: str) -> Iterator[str]:
    """Yields a pattern's parts as regular expressions; `?` and `+` apply to the character before.

    Raises:
        ValueError: it is not valid.
    """
    can_repeat = False
    for part in _PART.findall(pattern):
        if part in {"?", "+"}:
            if not can_repeat:
                raise ValueError("nothing precedes it")
            yield part
        elif part.startswith("*"):
            yield "[^/]*" if part == "*" else ".*"
        elif part.startswith("[") and part != "[":
            yield _set(part)
        else:
            yield re.escape(part.removeprefix("\\"))
        can_repeat = part not in {"?", "+"} and not part.startswith("*")


def _set(part: str) -> str:
    if not _SET.fullmatch(part):
        raise ValueError("it is not a set of characters")
    return part
