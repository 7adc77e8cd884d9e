"""What a change took away, and which pages may link to it: found without parsing every page of the repository."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self
from urllib.parse import unquote

from bot.jobserver.checks.change import Change
from bot.jobserver.checks.link_targets import LinkTargets, split_target

_DELIMITERS = r"\s\"'<>()\[\]{}|`,="
_TARGET = re.compile(f"[^{_DELIMITERS}]+")
"""Whatever can be a link's target in Markdown, MDX or HTML, and most of what cannot."""
_DELIMITER = re.compile(f"[{_DELIMITERS}]")
_INDEXES = frozenset({"index", "readme", "_index"})


@dataclass(frozen=True)
class Gone:
    """What links may no longer lead to.

    Attributes:
        names: The last parts of the addresses of removed files, in lower case.
        anchors: Of headings that are gone.
        phrases: What links to the other removed files hold when they are decoded: their paths have characters that end
            a link's target.
    """

    names: frozenset[str]
    anchors: frozenset[str]
    phrases: frozenset[str]

    @classmethod
    def of(cls, change: Change) -> Self:
        odd = {path for path in change.removed if _DELIMITER.search(str(path))}
        return cls(
            frozenset(name.casefold() for path in change.removed - odd for name in _names(path)),
            frozenset(_anchors_gone(change)),
            frozenset(name for path in odd for name in _names(path)),
        )

    def __bool__(self) -> bool:
        return bool(self.names or self.anchors or self.phrases)

    def may_be_meant(self, text: str, page: PurePosixPath, before: LinkTargets, after: LinkTargets) -> bool:
        """Whether the text of a page holds something that led somewhere before, and does not any more."""
        if self.phrases and any(phrase in form for form in (text, unquote(text)) for phrase in self.phrases):
            return True
        for target in set(_TARGET.findall(text)):
            name, anchor = split_target(target)
            if anchor in self.anchors:
                return True
            if self._is_named(name) and before.find(page, name) is not None and after.find(page, name) is None:
                return True
        return False

    def _is_named(self, target: str) -> bool:
        last = target.rstrip("/").rpartition("/")[2].casefold()
        return last in self.names or last.partition(".")[0] in self.names


def _names(path: PurePosixPath) -> Iterator[str]:
    """Yields what an address of the file may end with: a folder's index is found by the folder's name."""
    yield path.name
    yield path.name.partition(".")[0]
    if path.stem.casefold() in _INDEXES and path.parent.name:
        yield path.parent.name


def _anchors_gone(change: Change) -> Iterator[str]:
    for path in change.changed_pages:
        before, after = change.page_before(path), change.page(path)
        if before and after:
            yield from before.anchors - after.anchors
