"""Lists in pages, with Slack's opaque cursors."""

import base64
import binascii
from collections.abc import Sequence
from typing import TypeVar

from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.wire.arguments import Arguments

MAX_PAGE_SIZE = 1000
Item = TypeVar("Item")


def page_of(items: Sequence[Item], arguments: Arguments, *, default: int) -> tuple[Sequence[Item], Json]:
    """Returns a page of a list and its ``response_metadata``."""
    start = read_cursor(arguments, "offset")
    limit = arguments.integer("limit", default, low=0, high=MAX_PAGE_SIZE) or default
    end = start + limit
    cursor = write_cursor("offset", end) if end < len(items) else ""
    return items[start:end], {"next_cursor": cursor}


def write_cursor(kind: str, position: int) -> str:
    return base64.b64encode(f"{kind}:{position}".encode()).decode()


def read_cursor(arguments: Arguments, kind: str) -> int:
    """Returns the position in the cursor given; 0 without one.

    Raises:
        SlackError: ``invalid_cursor``.
    """
    cursor = arguments.text("cursor")
    if not cursor:
        return 0
    try:
        text = base64.b64decode(cursor, validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        raise SlackError("invalid_cursor") from None
    found, _, position = text.partition(":")
    if found != kind or not position.isdigit() or len(position) > 20:  # noqa: PLR2004 - microseconds have 16 digits
        raise SlackError("invalid_cursor")
    return int(position)
