"""Which paths a job may change: what the patterns allow, and nothing that runs unless they name it. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from unicodedata import normalize

from bot.jobserver.repository.names_that_run import Held, held_parts

EVERYTHING = "**"
_WILDCARD = re.compile(r"[*?\[]")
_NAVIGATIONS = frozenset({"mkdocs.yml", "mkdocs.yaml"})
"""Settings that name programs, and hold the navigation, too."""


def _never(_before: bytes, _after: bytes) -> bool:
    return False


@dataclass(frozen=True)
class AllowedPaths:
    """Patterns of paths: `*` and `?` within a name, `**` for any folders.

    No wildcard stands for a name that runs something: that has to be written out. The endings of programs can be
    written behind one: `examples/**/*.py`. `only_navigation` tells whether two versions of MkDocs' settings differ in
    nothing else.
    """

    patterns: tuple[str, ...] = (EVERYTHING,)
    only_navigation: Callable[[bytes, bytes], bool] = field(default=_never, compare=False)

    def allows(self, path: PurePosixPath, *, is_program: bool = False) -> bool:
        """Whether a job may add, change or delete this file. `is_program`: its contents say that it is one."""
        held = list(held_parts(path))
        held[-1] = Held.NAME if is_program and held[-1] is None else held[-1]
        return any(_matches(pattern, path.parts, held) for pattern in self._compiled)

    def has_navigation(self, path: PurePosixPath) -> bool:
        """Whether a job may change the navigation in this file of settings: where it may change the pages."""
        beside = (path.with_name("index.md"), path.parent / "docs" / "index.md")
        return path.name in _NAVIGATIONS and any(map(self.allows, beside))

    @cached_property
    def _compiled(self) -> tuple[tuple["_Segment", ...], ...]:
        return tuple(map(_compile, self.patterns))


def matches(pattern: str, path: str) -> bool:
    """Whether a path is one that the pattern means, whatever it is the path of."""
    parts = path.split("/")
    return _matches(_compile(pattern), parts, [None] * len(parts))


@dataclass(frozen=True)
class _Segment:
    """One part of a pattern."""

    text: str

    @property
    def is_any_folders(self) -> bool:
        return self.text == EVERYTHING

    def takes(self, name: str, held: Held | None) -> bool:
        if self.is_any_folders:
            return held is None
        if not fnmatchcase(normalize("NFC", name), self.text):
            return False
        return held is None or self._names(name, held)

    def _names(self, name: str, held: Held) -> bool:
        if not _WILDCARD.search(self.text):
            return True
        ending = PurePosixPath(name).suffix
        return held is Held.PROGRAM and self.text.endswith(ending) and not _WILDCARD.search(ending)


@lru_cache
def _compile(pattern: str) -> tuple[_Segment, ...]:
    return tuple(map(_Segment, normalize("NFC", pattern).split("/")))


def _matches(pattern: Sequence[_Segment], parts: Sequence[str], held: Sequence[Held | None]) -> bool:
    """Follows all ways through the pattern at once: as many steps as parts times segments."""
    at = _with_skipped(pattern, {0})
    for name, reason in zip(parts, held, strict=True):
        taken = {place for place in at if place < len(pattern) and pattern[place].takes(name, reason)}
        stays = {place for place in taken if pattern[place].is_any_folders}
        at = _with_skipped(pattern, stays | {place + 1 for place in taken})
        if not at:
            return False
    return len(pattern) in at


def _with_skipped(pattern: Sequence[_Segment], places: set[int]) -> set[int]:
    """`**` stands for no folder, too; as the last part it stands for something."""
    found = set(places)
    for place in range(len(pattern) - 1):
        if place in found and pattern[place].is_any_folders:
            found.add(place + 1)
    return found
