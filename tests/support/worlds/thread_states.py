"""Thread states from the fields of all their parts."""

from typing import Any, get_type_hints

from bot.domain.threads.thread import Announcements, Failure, Participation, Planning, ThreadState, Work

PARTS = {
    "failure": Failure,
    "announcements": Announcements,
    "work": Work,
    "people": Participation,
    "planning": Planning,
}


def thread_state(**fields: Any) -> ThreadState:
    """Returns a state with these fields, whichever part each of them is in."""
    parts: dict[str, Any] = {}
    for name, part in PARTS.items():
        parts[name] = part(**{field: fields.pop(field) for field in [*fields] if field in get_type_hints(part)})
    return ThreadState(**fields, **parts)
