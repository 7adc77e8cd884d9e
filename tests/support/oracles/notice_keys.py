"""The keys of notices, as the messages of a workspace carry them in their metadata."""

from collections.abc import Collection

from bot.workspace.model.entities import Message
from bot.workspace.server import WorkspaceServer


def key_of(message: Message) -> str:
    """`<thread>/<key within the thread>`; empty where a message carries none."""
    payload = (message.metadata or {}).get("event_payload", {})
    return str(payload.get("key", ""))


def key_in_thread(message: Message) -> str:
    """The same without the thread's part."""
    return key_of(message).partition("/")[2]


def all_keys(workspace: WorkspaceServer) -> list[str]:
    """Those of all messages in all channels."""
    state = workspace.state
    messages = (message for channel in state.channels.values() for message in state.conversation(channel))
    return [key for message in messages if (key := key_of(message))]


def explained(keys: Collection[str]) -> set[str]:
    """The ids of requests of which a thread tells that they were not taken, or perhaps not."""
    about = (key.split("/") for key in keys if "/unsure/" in key or "/refused/" in key)
    return {request for _, request, *_ in about}
