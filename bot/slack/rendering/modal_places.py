"""What a modal is about, kept in the view itself (`private_metadata`): a submission tells of no channel. Pure."""

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

MAX_METADATA = 3_000
"""Slack's limit for `private_metadata`."""


@dataclass(frozen=True)
class ModalPlace:
    """Where a modal was opened. Every field can be empty.

    Attributes:
        channel_id: The channel; empty: it is chosen in the modal.
        thread_ts: The thread that the job is to answer in.
        message_ts: The message that is handed over.
        thread_id: The job that is steered, by our id of its thread.
        scope: How much of the conversation goes along, of a message that is handed over.
        files: The ids of the message's files.
        file_names: Their names.
    """

    channel_id: str = ""
    thread_ts: str = ""
    message_ts: str = ""
    thread_id: str = ""
    scope: str = ""
    files: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()

    @property
    def draft_key(self) -> str:
        """Under which what was typed there is kept."""
        if self.thread_id:
            return f"thread/{self.thread_id}"
        return f"message/{self.channel_id}/{self.message_ts}" if self.message_ts else f"job/{self.channel_id}"

    def encoded(self) -> str:
        """Returns it as text that Slack keeps; names of files go where they have no room."""
        given = {name: value for name, value in asdict(self).items() if value}
        text = json.dumps(given, separators=(",", ":"))
        return text if len(text) <= MAX_METADATA else replace(self, file_names=()).encoded()


def parse_place(text: str) -> ModalPlace:
    """Returns what was encoded; whatever else it may be is left out."""
    try:
        given = json.loads(text[: 2 * MAX_METADATA])
    except (ValueError, RecursionError):
        return ModalPlace()
    known = {field.name: given.get(field.name) for field in fields(ModalPlace)} if isinstance(given, dict) else {}
    return ModalPlace(**{name: _read(value) for name, value in known.items() if value})


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""
