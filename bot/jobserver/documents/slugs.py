"""Titles as they stand in addresses."""

import re
from collections import Counter

_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


def slug(title: str) -> str:
    """Returns a title as it stands in a file name: small letters and digits of any script, joined by hyphens."""
    return _BETWEEN_WORDS.sub("-", title.casefold()).strip("-")[:60].rstrip("-")


def heading_anchor(title: str) -> str:
    """Returns the anchor that GitHub, Mintlify and MkDocs give to the first heading of this title."""
    return _NOT_IN_ANCHORS.sub("", title.strip().lower()).replace(" ", "-")


class AnchorNames:
    """Gives each further heading of the same title a number, as GitHub does."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def next_for(self, title: str) -> str:
        anchor = heading_anchor(title)
        number = self._seen[anchor]
        self._seen[anchor] += 1
        return f"{anchor}-{number}" if number else anchor
