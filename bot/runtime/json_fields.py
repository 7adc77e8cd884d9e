"""Reading JSON that others wrote: any field can be missing, null or of another type, and none of that raises."""

from typing import Any


def text_at(value: Any, *path: str) -> str:
    """Returns the text at a path of keys; empty where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def object_at(value: Any, key: str) -> dict[str, Any]:
    """Returns the object under a key; empty where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def objects_at(value: Any, key: str) -> list[dict[str, Any]]:
    """Returns the objects in the list under a key, without whatever else is in it; empty where there is no list."""
    items = value.get(key) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def first_item_at(value: Any, key: str) -> Any:
    """Returns the first item of the list under a key; None where there is none."""
    items = value.get(key) if isinstance(value, dict) else None
    return items[0] if isinstance(items, list) and items else None
