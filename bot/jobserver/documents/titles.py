"""A page's title without parsing the page: quick enough to ask of every page of a repository."""

from itertools import zip_longest

from bot.jobserver.documents.fences import Fence, opening_fence
from bot.jobserver.documents.front_matter import find_front_matter

_LOOKED_AT = 20_000
_SHORTEST_UNDERLINE = 3


def quick_title(text: str) -> str | None:
    """Returns the title that the front matter or the first heading gives, within the first 20,000 characters."""
    text = text[:_LOOKED_AT]
    front_matter = find_front_matter(text)
    if front_matter is not None:
        title = front_matter.values.get("title")
        if isinstance(title, str) and title.strip():
            return title.strip()
    return _first_heading(text[front_matter.span.end :] if front_matter else text)


def _first_heading(text: str) -> str | None:
    fence: Fence | None = None
    lines = text.splitlines()
    for line, below in zip_longest(lines, lines[1:], fillvalue=""):
        if fence is not None:
            fence = None if fence.is_closed_by(line) else fence
        elif line.startswith(("# ", "= ")):
            return line[2:].strip(" \t#") or None
        elif len(below) >= _SHORTEST_UNDERLINE and not below.strip("=") and line.strip("= \t"):
            return line.strip()
        else:
            fence = opening_fence(line)
    return None
