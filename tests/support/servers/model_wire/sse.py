"""Server-sent events, which all four formats use for streaming."""

import json
from collections.abc import Mapping
from typing import Any


def event(data: Mapping[str, Any], name: str = "") -> bytes:
    """One event, without its name if the format has none."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def typed_event(data: Mapping[str, Any]) -> bytes:
    """One event named by its type."""
    return event(data, str(data["type"]))


def text_of(content: Any) -> str:
    """Returns the text in content that is a string, blocks, or anything else."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(block) for block in content)
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return json.dumps(content, ensure_ascii=False)
