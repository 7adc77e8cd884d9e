"""The files of a tree, as git lists them."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from unicodedata import normalize

_KEPT = 20_000
"""About 10 MB."""
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)[ ]*(?:\..*)?", re.IGNORECASE | re.DOTALL
)
_FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f]')


@lru_cache(maxsize=_KEPT)
def tree_path(name: str) -> PurePosixPath:
    """Returns the path of a name in a tree; what pathlib works out for its hash and its order is worked out once.

    Almost all paths of a tree are those of the tree before.
    """
    return PurePosixPath(name)


def unportable(new: Collection[PurePosixPath], all_paths: Collection[PurePosixPath]) -> Iterator[str]:
    """Yields in words which names of new files other systems cannot hold, or cannot tell from another file's.

    `all_paths` are all files that there are after the change.
    """
    yield from (
        f"`{path}` has a name that Windows cannot hold" for path in new if not all(map(_is_portable, path.parts))
    )
    if not new:
        return
    places = {place for path in new for place in (path, *path.parents)}
    known = _by_folded(all_paths, set(map(_folded, places)))
    told = set[PurePosixPath]()
    for path in new:
        for place in (path, *list(path.parents)[:-1]):
            others = known[_folded(place)] - {place}
            if others and place not in told:
                told |= others | {place}
                yield f"`{place}` and `{min(others)}` are one file where capitals or accents make no difference"


def _is_portable(name: str) -> bool:
    return not (_RESERVED.fullmatch(name) or _FORBIDDEN.search(name) or name.endswith((" ", ".")))


def folders_of(paths: Iterable[PurePosixPath]) -> set[PurePosixPath]:
    """Returns all folders that these paths lie in, the root included."""
    found = set[str]()
    for path in paths:
        folder = str(path).rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return set(map(tree_path, found))


def _by_folded(paths: Collection[PurePosixPath], wanted: Collection[str]) -> dict[str, set[PurePosixPath]]:
    found: dict[str, set[PurePosixPath]] = {}
    for place in {*paths, *folders_of(paths)}:
        if (folded := _folded(place)) in wanted:
            found.setdefault(folded, set()).add(place)
    return found


def _folded(path: PurePosixPath) -> str:
    """As Windows and macOS compare."""
    text = str(path)
    return text.lower() if text.isascii() else normalize("NFD", normalize("NFD", text).upper().casefold())


class Mode(StrEnum):
    """What git keeps besides plain files."""

    PROGRAM = "100755"
    LINK = "120000"
    REPOSITORY = "160000"


@dataclass(frozen=True)
class TreeListing:
    """All files of a tree, which never change: it may be shared. `modes` has those that are no plain files."""

    blobs: Mapping[PurePosixPath, str]
    modes: Mapping[PurePosixPath, Mode]

    @cached_property
    def folders(self) -> set[PurePosixPath]:
        """Returns what the files lie in, the root included."""
        return folders_of(self.blobs)

    def named(self, name: str) -> list[PurePosixPath]:
        """Returns the files of this name."""
        return [path for path in self.blobs if path.name == name]

    def of_mode(self, mode: Mode) -> set[PurePosixPath]:
        """Returns what git keeps as this."""
        return {path for path, known in self.modes.items() if known is mode}


def parse_listing(output: str) -> TreeListing:
    """Returns what `git ls-tree -r -z` wrote."""
    blobs: dict[PurePosixPath, str] = {}
    modes: dict[PurePosixPath, Mode] = {}
    known = set(Mode)
    for line in filter(None, output.split("\0")):
        facts, _, name = line.partition("\t")
        mode, _, blob = facts.split(" ")
        path = tree_path(name)
        blobs[path] = blob
        if mode in known:
            modes[path] = Mode(mode)
    return TreeListing(blobs, modes)
