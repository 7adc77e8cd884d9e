"""Answers of GitHub as it sends them: with all keys that it promises, whatever a test leaves out.

`github_examples.json` has each kind of answer with the required keys and the examples of `@octokit/openapi` (MIT).
"""

import json
import re
from pathlib import Path
from typing import Any

_EXAMPLES: dict[str, Any] = json.loads(Path(__file__).with_name("github_examples.json").read_text(encoding="utf-8"))
_OF_CALLS: dict[str, str | list[str]] = {
    "GET /repos/*/*": "full-repository",
    "GET /repos/*/*/pulls": ["pull-request-simple"],
    "POST /repos/*/*/pulls": "pull-request",
    "GET /repos/*/*/pulls/*": "pull-request",
    "PATCH /repos/*/*/pulls/*": "pull-request",
    "POST /repos/*/*/pulls/*/requested_reviewers": "pull-request-simple",
    "POST /repos/*/*/issues/*/labels": ["label"],
    "GET /repos/*/*/pulls/*/reviews": ["pull-request-review"],
    "GET /repos/*/*/pulls/*/comments": ["pull-request-review-comment"],
    "GET /repos/*/*/commits/*/check-runs": "check-runs",
    "GET /repos/*/*/commits/*/status": "combined-commit-status",
    "GET /repos/*/*/actions/runs": "workflow-runs",
    "GET /repos/*/*/deployments": ["deployment"],
    "GET /repos/*/*/deployments/*/statuses": ["deployment-status"],
    "GET /repos/*/*/installation": "installation",
}
_ANSWERS = [(re.compile(re.escape(call).replace(r"\*", "[^/]+")), kind) for call, kind in _OF_CALLS.items()]


def completed(method: str, path: str, told: Any) -> Any:
    """Returns the answer to a call, with what is missing in it."""
    for call, kind in _ANSWERS:
        if call.fullmatch(f"{method} {path}"):
            return _filled([_EXAMPLES[each] for each in kind] if isinstance(kind, list) else _EXAMPLES[kind], told)
    return told


def _filled(example: Any, told: Any) -> Any:
    match example, told:
        case dict(), dict():
            return {key: _missing(each) for key, each in example.items()} | {
                key: _filled(example.get(key), each) for key, each in told.items()
            }
        case [each], list():
            return [_filled(each, one) for one in told]
        case _:
            return told


def _missing(example: Any) -> Any:
    if isinstance(example, list):
        return []
    return {key: _missing(each) for key, each in example.items()} if isinstance(example, dict) else example
