"""The keys of notices, as messages of a workspace carry them in their metadata."""

from collections.abc import Collection

from bot.workspace.model.entities import Message
from bot.workspace.server import WorkspaceServer


def key_of(message: Message) -> str:
    """Returns `<thread>/<key within the thread>`; empty if a message has none."""
    payload = (message.metadata or {}).get("event_payload", {})
    return str(payload.get("key", ""))


def key_in_thread(message: Message) -> str:
    """Returns the key without the thread's part."""
    return key_of(message).partition("/")[2]


def all_keys(workspace: WorkspaceServer) -> list[str]:
    """Returns those of all messages in all channels."""
    state = workspace.state
    messages = (message for channel in state.channels.values() for message in state.conversation(channel))
    return [key for message in messages if (key := key_of(message))]


def explained(keys: Collection[str]) -> set[str]:
    """Returns the ids of requests that a thread explains as not taken, or as in doubt."""
    about = (key.split("/") for key in keys if "/unsure/" in key or "/refused/" in key)
    return {request for _, request, *_ in about}
