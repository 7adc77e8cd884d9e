"""The files of a git tree."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath

LARGEST_FILE = 5_000_000
LIST_TREE = ("ls-tree", "-r", "-l", "-z", "--full-tree")
"""What git is asked for a listing, before the tree."""
_PLAIN = "100"
"""How the modes of plain files begin."""


def folders_of(paths: Iterable[PurePosixPath]) -> set[PurePosixPath]:
    """Returns all folders that contain these paths, including the root."""
    found = set[str]()
    for path in paths:
        folder = str(path).rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return set(map(PurePosixPath, found))


class Mode(StrEnum):
    """The modes of entries that are not plain files."""

    PROGRAM = "100755"
    LINK = "120000"
    REPOSITORY = "160000"


@dataclass(frozen=True)
class TreeEntry:
    """A tree's entry for a path. `size` is in bytes; None for a submodule or a missing object."""

    mode: str
    id: str
    size: int | None

    @property
    def is_readable(self) -> bool:
        """Tells whether it is a plain file of at most 5 MB."""
        return self.mode.startswith(_PLAIN) and self.size is not None and self.size <= LARGEST_FILE


@dataclass(frozen=True)
class TreeListing:
    """All entries of a tree except folders; immutable, so it can be shared."""

    entries: Mapping[PurePosixPath, TreeEntry]

    @cached_property
    def blobs(self) -> dict[PurePosixPath, str]:
        return {path: entry.id for path, entry in self.entries.items()}

    @cached_property
    def folders(self) -> set[PurePosixPath]:
        """All folders, including the root."""
        return folders_of(self.entries)

    def of_mode(self, mode: Mode) -> set[PurePosixPath]:
        """Returns the entries with this mode."""
        return {path for path, entry in self.entries.items() if entry.mode == mode}


def parse_listing(output: str) -> TreeListing:
    """Parses the output of `LIST_TREE`."""
    entries = {}
    for line in filter(None, output.split("\0")):
        facts, _, name = line.partition("\t")
        mode, _, blob, size = facts.split()
        entries[PurePosixPath(name)] = TreeEntry(mode, blob, int(size) if size.isdigit() else None)
    return TreeListing(entries)
