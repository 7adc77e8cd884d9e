"""New pages that look like their neighbours, and new sections, in each format."""

import html
import json
import re
from collections.abc import Sequence

from bot.jobserver.documents.front_matter import find_front_matter
from bot.jobserver.documents.mkdocs_navigation import scalar
from bot.jobserver.documents.page import FrontMatter

_COUNTING_KEYS = frozenset(("sidebar_position", "nav_order", "weight", "order", "position"))
_TITLE_KEYS = frozenset(("title", "sidebarTitle", "sidebar_label", "linkTitle", "nav_title"))
_SUMMARY_KEYS = frozenset(("description", "summary", "excerpt"))
_LONGEST_SUMMARY = 160
_FIRST_HEADING = re.compile(r"\s*+#[ \t]")


def page_text(suffix: str, title: str, text: str, neighbours: Sequence[str]) -> str:
    """Returns a new page: with the front matter that most of its neighbours have, and a heading unless that has it."""
    found = [front for neighbour in neighbours if (front := find_front_matter(neighbour)) is not None]
    if suffix.lower() not in {".md", ".mdx", ".markdown"} or 2 * len(found) <= len(neighbours):
        return _with_line_ends(f"{heading(suffix, title, level=1)}\n\n{body(suffix, text)}\n", neighbours)
    written = _front_matter(found, title, text)
    shows_title = not any(_FIRST_HEADING.match(neighbour[_end(neighbour) :]) for neighbour in neighbours)
    has_title = any("title" in matter.values for matter in found)
    opening = "" if shows_title and has_title else f"{heading(suffix, title, level=1)}\n\n"
    return _with_line_ends(f"{written}\n{opening}{body(suffix, text)}\n", neighbours)


def _end(text: str) -> int:
    front = find_front_matter(text)
    return front.span.end if front else 0


def _with_line_ends(text: str, neighbours: Sequence[str]) -> str:
    windows = sum("\r\n" in neighbour for neighbour in neighbours)
    return text.replace("\n", "\r\n") if 2 * windows > len(neighbours) > 1 else text


def _front_matter(found: Sequence[FrontMatter], title: str, text: str) -> str:
    is_toml = 2 * sum(front.text.strip() != "" and _mark(front) == "+++" for front in found) > len(found)
    mark, sign = ("+++", " = ") if is_toml else ("---", ": ")
    keys = dict.fromkeys(key for front in found for key in front.values)
    common = [key for key in keys if 2 * sum(key in front.values for front in found) > len(found)]
    quoted = is_toml or any(re.search(r'^title: *"', front.text, re.MULTILINE) for front in found)
    lines = []
    for key in common:
        value = _value(key, [front.values[key] for front in found if key in front.values], title, text)
        if value is not None:
            lines.append(f"{key}{sign}{_written(value, quoted=quoted)}")
    return "\n".join([mark, *lines, mark]) + "\n"


def _mark(front: FrontMatter) -> str:
    return "+++" if "=" in front.text.split("\n", 1)[0] else "---"


def _value(key: str, values: Sequence[object], title: str, text: str) -> str | int | bool | None:
    """Returns a new page's value of a key: its own where the key is known, else the one that all others share."""
    if key in _TITLE_KEYS:
        return title
    if key in _SUMMARY_KEYS:
        line = " ".join(text.split("\n\n", 1)[0].split())
        return line if len(line) <= _LONGEST_SUMMARY else f"{line[: _LONGEST_SUMMARY - 1]}…"
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if key in _COUNTING_KEYS:
        return max(numbers) + 1 if numbers else None
    first = values[0]
    is_shared = len(values) > 1 and all(value == first for value in values)
    return first if is_shared and isinstance(first, str | int | bool) else None


def _written(value: str | int | bool, *, quoted: bool) -> str:  # noqa: FBT001 (a value of YAML)
    return scalar(value) if isinstance(value, str) and not quoted else json.dumps(value, ensure_ascii=False)


def heading(suffix: str, title: str, *, level: int) -> str:
    match suffix.lower():
        case ".rst":
            return f"{title}\n{'=-'[level - 1] * len(title)}"
        case ".adoc" | ".asciidoc":
            return f"{'=' * level} {title}"
        case ".html" | ".htm":
            return f"<h{level}>{html.escape(title)}</h{level}>"
        case ".txt":
            return title
    return f"{'#' * level} {title}"


def body(suffix: str, text: str) -> str:
    if suffix.lower() in {".html", ".htm"}:
        return f"<p>{html.escape(text)}</p>"
    return text.replace("\r\n", "\n")


def with_section(suffix: str, page: str, title: str, text: str) -> str | None:
    """Returns a page with a new last section; None if it has one of that title."""
    newline = "\r\n" if "\r\n" in page else "\n"
    written = heading(suffix, title, level=2)
    if written in page.replace("\r\n", "\n").split("\n") or ("\n" in written and written in page):
        return None
    ending = "" if page.endswith("\n") or not page else newline
    blank = "" if not page or page.endswith(("\n\n", "\n\r\n")) else newline
    section = f"{written}\n\n{body(suffix, text)}\n".replace("\n", newline)
    return f"{page}{ending}{blank}{section}"
