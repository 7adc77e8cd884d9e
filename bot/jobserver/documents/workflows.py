"""Workflows of GitHub Actions (and of Gitea and Forgejo): whether they start when a branch is pushed. Pure.

Source: GitHub's documentation, "Workflow syntax: on" and its "Filter pattern cheat sheet".
"""

import re
from collections.abc import Mapping, Sequence

from bot.jobserver.documents.front_matter import load_yaml

_MAX_LENGTH = 200_000
_MAX_WILDCARDS = 10
"""In a pattern; more are taken for a match, rather than tried."""
_AT_CREATION = frozenset({"create", "delete"})


def starts_at_push(text: str, branch: str) -> bool:
    """Returns whether a workflow starts when this branch is pushed, made or deleted, whichever files are changed.

    Raises:
        ValueError: it cannot be read, in words.
    """
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"it is longer than {_MAX_LENGTH} characters")
    workflow = load_yaml(text)
    if not isinstance(workflow, dict):
        raise ValueError("it is no list of keys with values")  # noqa: TRY004 (of the text, not of an argument)
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
    """The last pattern that fits decides."""
    is_among = False
    for pattern in patterns:
        if _fits(pattern.removeprefix("!"), branch):
            is_among = not pattern.startswith("!")
    return is_among


def _fits(pattern: str, branch: str) -> bool:
    wildcards = re.findall(r"\*+|[?+]", pattern)
    if len(wildcards) > _MAX_WILDCARDS:
        return True
    parts = re.split(r"(\*+|[?+]|\[[^\]]*\]|\\.)", pattern)
    try:
        return re.fullmatch("".join(map(_as_expression, parts)), branch) is not None
    except re.error:
        return True


def _as_expression(part: str) -> str:
    if part.startswith("*"):
        return "[^/]*" if part == "*" else ".*"
    if part in {"?", "+"} or (part.startswith("[") and part.endswith("]")):
        return part
    return re.escape(part.removeprefix("\\"))
