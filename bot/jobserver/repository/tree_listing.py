"""The files of a tree, as git lists them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath

from bot.jobserver.repository.portable_names import folders_of
from bot.jobserver.repository.tree_paths import tree_path


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
