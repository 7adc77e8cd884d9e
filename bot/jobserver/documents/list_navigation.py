"""docsify's `_sidebar.md` and GitBook's and mdBook's `SUMMARY.md`: a list of links."""

import re
from functools import partial

from bot.jobserver.documents.markdown import parse_markdown
from bot.jobserver.documents.navigation_entry import Entry, NewEntry, line_end
from bot.jobserver.documents.page import LinkKind

_ITEM = re.compile(r"(?P<before>[ \t]*+(?:[-*+]|\d{1,9}[.)])[ \t]*+)\[")
_TITLE_SIGNS = re.compile(r"([\\\[\]])")


def entries(text: str) -> list[Entry]:
    """Returns the pages in their order."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    found = []
    for link in parse_markdown(text, mdx=False).links:
        item = _ITEM.match(lines[link.line - 1])
        if item and link.kind is LinkKind.RELATIVE and not link.is_image:
            last = _last_line_of_item(lines, link.line - 1)
            found.append(Entry(link.target, line_end(text, starts[last]), partial(_render, item["before"])))
    return found


def _last_line_of_item(lines: list[str], index: int) -> int:
    """An item ends after those that are further in."""
    indent = _indent(lines[index])
    last = index
    for number in range(index + 1, len(lines)):
        if not lines[number].strip():
            continue
        if _indent(lines[number]) <= indent:
            break
        last = number
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _render(before: str, new: NewEntry) -> str:
    target = f"<{new.target}>" if " " in new.target else new.target
    title = _TITLE_SIGNS.sub(r"\\\1", new.title)
    return f"\n{before}[{title}]({target})"
