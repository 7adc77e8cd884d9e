"""Server-sent events, in which all four formats stream."""

import json
from collections.abc import Mapping
from typing import Any


def event(data: Mapping[str, Any], name: str = "") -> bytes:
    """One event; its name is left out where the format has none."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def typed_event(data: Mapping[str, Any]) -> bytes:
    """An event that is named by its type."""
    return event(data, str(data["type"]))


def text_of(content: Any) -> str:
    """What can be read in a content that is a string, or blocks, or anything else."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(block) for block in content)
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return json.dumps(content, ensure_ascii=False)
