"""The rich_text block that Slack's composer makes of what a person typed."""

import hashlib
import re

from bot.workspace.model.entities import Json
from bot.workspace.model.text import unescape

_REFERENCE = re.compile(r"<([^<>]+)>")


def rich_text_of(text: str) -> list[Json]:
    """Returns the blocks for a person's stored text: one section of texts, users, channels, broadcasts and links."""
    elements: list[Json] = []
    position = 0
    for match in _REFERENCE.finditer(text):
        _add_text(elements, text[position : match.start()])
        elements.append(_element(match.group(1)))
        position = match.end()
    _add_text(elements, text[position:])
    section = {"type": "rich_text_section", "elements": elements}
    return [{"type": "rich_text", "block_id": _block_id(text), "elements": [section]}]


def _add_text(elements: list[Json], text: str) -> None:
    if text:
        elements.append({"type": "text", "text": unescape(text)})


def _element(reference: str) -> Json:
    target, _, label = reference.partition("|")
    match target[:1]:
        case "@":
            return {"type": "user", "user_id": target[1:]}
        case "#":
            return {"type": "channel", "channel_id": target[1:]}
        case "!" if target.startswith("!subteam^"):
            return {"type": "usergroup", "usergroup_id": target.removeprefix("!subteam^")}
        case "!":
            return {"type": "broadcast", "range": target[1:]}
    link: Json = {"type": "link", "url": unescape(target)}
    if label:
        link["text"] = unescape(label)
    return link


def _block_id(text: str) -> str:
    """Returns an id that the same text always has, so that a message reads the same each time."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:5]
