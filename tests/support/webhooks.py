"""GitHub's webhooks, signed as GitHub does it, and the recorded examples of all its events."""

import hashlib
import hmac
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from support.agents.packages import Package, installed_folder

PATH = "/webhooks/github"
_EXAMPLES = Package("@octokit/webhooks-examples", "7.6.1")


def signature_of(secret: str, body: bytes) -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


def webhook(secret: str, payload: object, **changes: str) -> dict[str, Any]:
    """The body and headers of an event; `changes` of headers have underscores for hyphens, and remove empty ones."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "pull_request",
        "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "X-Hub-Signature-256": signature_of(secret, body),
    }
    headers |= {name.replace("_", "-"): value for name, value in changes.items()}
    return {"data": io.BytesIO(body), "headers": {name: value for name, value in headers.items() if value}}


def about(repository: str, number: int) -> dict[str, Any]:
    """An event about a pull request, as short as it may be."""
    return {"repository": {"full_name": repository}, "pull_request": {"number": number}}


def recorded() -> Iterator[tuple[str, Any]]:
    """Yields every recorded example, with its event. Raises NotInstalled where npm is missing."""
    folder = installed_folder(_EXAMPLES) / "node_modules" / _EXAMPLES.name
    for file in sorted(folder.glob("*/index.json")):
        for event in json.loads(file.read_text(encoding="utf-8")):
            yield from ((event["name"], example) for example in event["examples"])


def links_told(payload: Mapping[str, Any]) -> frozenset[str]:
    """Returns the links of the pull requests that an example names, those of its checks by GitHub's addresses."""
    check_run = payload.get("check_run") or {}
    groups = [check_run, check_run.get("check_suite"), payload.get("check_suite"), payload.get("workflow_run")]
    named = [pull for group in groups if group for pull in group.get("pull_requests", ()) if pull]
    places = {pull["url"].partition("/repos/")[2].replace("/pulls/", "/pull/") for pull in named}
    if isinstance(payload.get("pull_request"), dict):  # the addresses in one of them are another's
        places.add(f"{payload['repository']['full_name']}/pull/{payload['pull_request']['number']}")
    return frozenset(f"https://github.com/{place}" for place in places)
