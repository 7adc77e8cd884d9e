"""Samples of what Slack sends, each with every key that it has been seen to have: no other may be sent in its place.

They are in `../shared/data/slack-samples`, beside the repository. Where they are absent, nothing is found invented.
"""

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bot.workspace import WorkspaceServer

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "data" / "slack-samples"
_BOLT = "https://docs.slack.dev/tools/bolt-js/reference/interfaces"
DOCUMENTED = {
    "context_team_id": f"{_BOLT}/EnvelopedEvent",
    "context_enterprise_id": f"{_BOLT}/EnvelopedEvent",
    "shortcut.user.username": f"{_BOLT}/GlobalShortcut",
    "response_metadata": "https://docs.slack.dev/apis/web-api/",
    "is_share": "https://github.com/slackapi/slack-skills-plugin/issues/149",
}
"""Keys that no sample has, and where Slack documents them."""
SAME_ANSWER = {"users.conversations": "conversations.list"}
_INTERACTIONS = {
    "block_actions": "interactive-components/BlockActionPayload",
    "message_action": "interactive-components/MessageShortcutPayload",
    "shortcut": "interactive-components/MessageShortcutPayload",
    "view_submission": "views/ViewSubmissionPayload",
    "view_closed": "views/ViewClosedPayload",
}


@functools.cache
def sample(name: str) -> Any:
    """Returns a sample by its path without the suffix."""
    return json.loads((SAMPLES / f"{name}.json").read_bytes())


@functools.cache
def message() -> Any:
    """Returns all that messages are seen to have, since each sample lacks what others of its kind have."""
    kinds = ("MessagePayload", "MessageChangedPayload", "MessageFileSharePayload", "MessageThreadBroadcastPayload")
    events = [sample(f"events/{kind}")["event"] for kind in (*kinds, "AppMentionPayload")]
    changed = [events[1]["message"], events[1]["previous_message"]]
    answers = [sample("api/chat.postMessage")["message"], *sample("api/conversations.replies")["messages"]]
    return functools.reduce(merged, (*events, *changed, *answers))


_SHARED: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("message", "previous_message", "root"), message),
    "messages": lambda: [message()],
    "response_metadata": lambda: sample("api/apps.manifest.create")["response_metadata"],
    "view": lambda: sample("api/views.open")["view"],
}


@functools.cache
def sample_of(kind: str, subtype: str = "") -> Any:
    """Returns the sample of a kind of payload."""
    if kind == "command":
        return sample("app-backend/slash-commands/SlashCommandPayload")
    if kind in _INTERACTIONS:
        return sample(f"app-backend/{_INTERACTIONS[kind]}")
    events = (sample(f"events/{path.stem}") for path in sorted((SAMPLES / "events").glob("*.json")))
    of_kind = (kind, subtype)
    found = next(
        each for each in events if (told := each.get("event")) and (told["type"], told.get("subtype") or "") == of_kind
    )
    return merged(found, {"event": message()}) if kind in {"message", "app_mention"} else found


def merged(one: Any, other: Any) -> Any:
    """Returns a sample with the keys of both."""
    match one, other:
        case dict(), dict():
            both = {key: merged(one[key], other[key]) for key in one.keys() & other.keys()}
            return {**one, **other, **both}
        case list(), list():
            return one + other
        case _:
            return one or other


def invented(workspace: WorkspaceServer) -> list[str]:
    """Returns the keys that the workspace made up, in what it answered and sent."""
    if not SAMPLES.exists():
        return []
    found = set[str]()
    for call in workspace.web_api.calls:
        method = SAME_ANSWER.get(call.method, call.method)
        if (SAMPLES / "api" / f"{method}.json").exists():
            found.update(surplus(sample(f"api/{method}"), call.response, call.method))
    for record in workspace.deliveries.records:
        payload = record.envelope.payload
        told = payload.get("event", payload)
        kind = told.get("type", "command")
        found.update(surplus(sample_of(kind, told.get("subtype", "")), payload, kind))
    return sorted(found)


def surplus(known: Any, told: Any, place: str) -> Iterator[str]:
    """Yields the places of the keys that are not known. What is empty in a sample can be anything; blocks, which the
    app makes, are left out.
    """
    match known, told:
        case dict(), dict() if known:
            for key, value in told.items():
                if key not in known and DOCUMENTED.keys().isdisjoint({key, f"{place}.{key}"}):
                    yield f"{place}.{key}"
                elif key != "blocks":
                    shared = _SHARED[key]() if key in _SHARED else None
                    yield from surplus(merged(known.get(key), shared), value, f"{place}.{key}")
        case [_, *_], list():
            every = functools.reduce(merged, known)
            for each in told:
                yield from surplus(every, each, place)
