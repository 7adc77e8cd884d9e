"""Finds out whether workflows of GitHub Actions, Gitea and Forgejo start when a branch is pushed. Pure.

Source: GitHub's documentation, "Workflow syntax: on" and its "Filter pattern cheat sheet".
"""

import re

import yaml

from bot.jobserver.repository.allowed_paths import matches

_MAX_LENGTH = 200_000
_UNSURE = re.compile(r"[?+\\]|\*\*[^/]|[^/]\*\*")
"""Signs that mean something else in a path's pattern: such a filter is taken for one that matches."""


def starts_at_push(text: str, branch: str) -> bool:
    """Tells whether a workflow starts when this branch is pushed, created or deleted, whichever files change.

    Raises:
        ValueError: the workflow cannot be read; the message says why.
    """
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"it is longer than {_MAX_LENGTH} characters")
    try:
        workflow = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - it makes only texts, lists and mappings
    except yaml.YAMLError as error:
        raise ValueError("it is not YAML") from error
    if not isinstance(workflow, dict):
        raise ValueError("it is not a list of keys with values")  # noqa: TRY004 (of the text, not of an argument)
    on = workflow.get("on")
    events = on if isinstance(on, dict) else dict.fromkeys(map(str, on) if isinstance(on, list) else [str(on)])
    return bool({"create", "delete"}.intersection(events)) or ("push" in events and _takes(events["push"], branch))


def _takes(filters: object, branch: str) -> bool:
    given = filters if isinstance(filters, dict) else {}
    if "branches" in given:
        return _is_among(given["branches"], branch)
    if "branches-ignore" in given:
        return not _is_among(given["branches-ignore"], branch)
    return not {"tags", "tags-ignore"}.intersection(given)


def _is_among(patterns: object, branch: str) -> bool:
    """The last matching pattern decides."""
    is_among = False
    for pattern in map(str, patterns if isinstance(patterns, list) else [patterns]):
        wanted = pattern.removeprefix("!")
        if _UNSURE.search(wanted) or matches(wanted, branch):
            is_among = wanted == pattern
    return is_among
