"""Mintlify's `docs.json` and `mint.json`: the strings in lists called `pages`, however deep in groups and tabs."""

import json
import re
from collections.abc import Iterator
from functools import partial

from bot.jobserver.documents.navigation_entry import Entry, NewEntry

_PART = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]:]', re.DOTALL)
_MAX_DEPTH = 100


def entries(text: str) -> list[Entry]:
    """Returns the pages in their order.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return list(_entries(text))


def _entries(text: str) -> Iterator[Entry]:
    lists: list[bool] = []
    key, last = "", ""
    for match in _PART.finditer(text):
        sign = match[0]
        if sign == ":":
            key = last
        elif sign in "{[":
            lists.append(sign == "[" and (key == "pages" or (bool(lists) and lists[-1])))
            key = ""
        elif sign in "}]":
            lists.pop()
        else:
            last = json.loads(sign)
            if lists and lists[-1]:
                yield Entry(last, match.end(), partial(_render, _before(text, match.start())))
            key = ""


def _before(text: str, start: int) -> str:
    """Returns what stands between two entries: a line end with its indent, or a space."""
    line_start = text.rfind("\n", 0, start) + 1
    indent = text[line_start:start]
    return f"\n{indent}" if line_start and not indent.strip() else " "


def _render(before: str, new: NewEntry) -> str:
    return f",{before}{json.dumps(new.target, ensure_ascii=False)}"
