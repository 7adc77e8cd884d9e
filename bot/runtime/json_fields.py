"""Reads untrusted JSON. A field that is missing, null or of another type never raises."""

from typing import Any


def text_at(value: Any, *path: str) -> str:
    """Returns the text at a path of keys, or an empty one."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def object_at(value: Any, key: str) -> dict[str, Any]:
    """Returns the object under a key, or an empty one."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def objects_at(value: Any, key: str) -> list[dict[str, Any]]:
    """Returns the objects in the list under a key, without other items; empty if there is no list."""
    items = value.get(key) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
