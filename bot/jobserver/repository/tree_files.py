"""The files of a git tree."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath
from unicodedata import normalize

_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)[ ]*(?:\..*)?", re.IGNORECASE | re.DOTALL
)
_FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f]')


def unportable(new: Collection[PurePosixPath], all_paths: Collection[PurePosixPath]) -> Iterator[str]:
    """Yields messages about new files whose names are invalid or not unique on other systems.

    `all_paths` are all files after the change.
    """
    yield from (
        f"`{path}` has a name that Windows cannot hold" for path in new if not all(map(_is_portable, path.parts))
    )
    if not new:
        return
    places = {place for path in new for place in (path, *path.parents)}
    known = _by_folded(all_paths, set(map(_folded, places)))
    reported = set[PurePosixPath]()
    for path in new:
        for place in (path, *list(path.parents)[:-1]):
            others = known[_folded(place)] - {place}
            if others and place not in reported:
                reported |= others | {place}
                yield f"`{place}` and `{min(others)}` are one file where capitals or accents make no difference"


def _is_portable(name: str) -> bool:
    return not (_RESERVED.fullmatch(name) or _FORBIDDEN.search(name) or name.endswith((" ", ".")))


def folders_of(paths: Iterable[PurePosixPath]) -> set[PurePosixPath]:
    """Returns all folders that contain these paths, including the root."""
    found = set[str]()
    for path in paths:
        folder = str(path).rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return set(map(PurePosixPath, found))


def _by_folded(paths: Collection[PurePosixPath], wanted: Collection[str]) -> dict[str, set[PurePosixPath]]:
    found: dict[str, set[PurePosixPath]] = {}
    for place in {*paths, *folders_of(paths)}:
        if (folded := _folded(place)) in wanted:
            found.setdefault(folded, set()).add(place)
    return found


def _folded(path: PurePosixPath) -> str:
    """Returns a path in the form that Windows and macOS compare."""
    text = str(path)
    return text.lower() if text.isascii() else normalize("NFD", normalize("NFD", text).upper().casefold())


class Mode(StrEnum):
    """The modes of entries that are not plain files."""

    PROGRAM = "100755"
    LINK = "120000"
    REPOSITORY = "160000"


@dataclass(frozen=True)
class TreeListing:
    """All files of a tree; immutable, so it can be shared. `modes` are those of entries that are not plain files."""

    blobs: Mapping[PurePosixPath, str]
    modes: Mapping[PurePosixPath, Mode]

    @cached_property
    def folders(self) -> set[PurePosixPath]:
        """All folders, including the root."""
        return folders_of(self.blobs)

    def named(self, name: str) -> list[PurePosixPath]:
        """Returns the files of this name."""
        return [path for path in self.blobs if path.name == name]

    def of_mode(self, mode: Mode) -> set[PurePosixPath]:
        """Returns the entries with this mode."""
        return {path for path, known in self.modes.items() if known is mode}


def parse_listing(output: str) -> TreeListing:
    """Parses the output of `git ls-tree -r -z`."""
    blobs: dict[PurePosixPath, str] = {}
    modes: dict[PurePosixPath, Mode] = {}
    known = set(Mode)
    for line in filter(None, output.split("\0")):
        facts, _, name = line.partition("\t")
        mode, _, blob = facts.split(" ")
        path = PurePosixPath(name)
        blobs[path] = blob
        if mode in known:
            modes[path] = Mode(mode)
    return TreeListing(blobs, modes)
