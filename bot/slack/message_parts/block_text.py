"""The words of blocks, for messages that have no text besides: some apps write none."""

from collections.abc import Iterator
from typing import Any

from bot.domain.context.message_text import unescape_keeping_mentions
from bot.runtime.json_fields import text_at
from bot.runtime.misleading_characters import displayable

_DEEPEST = 10
_PARTS = ("title", "text", "fields", "elements", "rows")
_SIGNS = {"user": "@", "channel": "#", "usergroup": "!subteam^"}
_ON_ONE_LINE = frozenset({"rich_text_section", "rich_text_preformatted", "rich_text_quote"})


def block_text(blocks: list[dict[str, Any]]) -> str:
    """Returns what people read in the blocks, with marked mentions: a line for each part."""
    return "\n".join(filter(None, (_text(block, _DEEPEST) for block in blocks)))


def _text(part: dict[str, Any], depth: int) -> str:
    words = _own_words(part)
    if words is not None or not depth:
        return words or ""
    between = "" if text_at(part, "type") in _ON_ONE_LINE else "\n"
    return between.join(filter(None, (_text(child, depth - 1) for key in _PARTS for child in _objects(part.get(key)))))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields what stands under a key: an object, a list of them, or the rows of a table."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield item
        elif isinstance(item, list):
            yield from (cell for cell in item if isinstance(cell, dict))


def _own_words(part: dict[str, Any]) -> str | None:
    """Returns what a part says by itself; None where it only holds others."""
    text = text_at(part, "text")
    match text_at(part, "type"):
        case "mrkdwn" | "markdown":
            return unescape_keeping_mentions(displayable(text))
        case "text" | "plain_text":
            return displayable(text)
        case "link":
            return displayable(text or text_at(part, "url"))
        case "user" | "channel" | "usergroup" as kind:
            return unescape_keeping_mentions(f"<{_SIGNS[kind]}{text_at(part, f'{kind}_id')}>")
        case "emoji":
            return displayable(f":{text_at(part, 'name')}:")
        case _:
            return None
