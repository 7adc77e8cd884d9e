"""The files of a commit, and working copies whose unchanged files stay in git."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

_END = "\0"


class Snapshot(Protocol):
    """The files of a tree, by paths from the repository's root; links and nested repositories are excluded."""

    def paths(self) -> tuple[PurePosixPath, ...]:
        """Returns all files, sorted."""
        ...

    def may_hold(self, path: PurePosixPath) -> bool:
        """Tells whether a file of any size, a folder or a link has this name, or it is within a nested repository."""
        ...

    def read(self, path: PurePosixPath) -> bytes | None:
        """Returns a file's contents; None if there is none or it is larger than 5 MB."""
        ...

    def read_all(self, paths: Iterable[PurePosixPath]) -> Iterator[tuple[PurePosixPath, bytes]]:
        """Yields each of these files that `read` would return, using a single process.

        Raises:
            OSError: they cannot be read.
        """
        ...

    def write_files(self, folder: Path) -> None:
        """Writes all files into an empty folder, links as small text files.

        Raises:
            OSError: they cannot be written.
        """
        ...


@dataclass(frozen=True)
class LowerTree:
    """The lower layer of a copy whose files stay in git until they are changed, as in an overlay file system.

    The copy's directory is the upper layer and contains the changed files. `note`, a file beside it, contains the git
    tree's id and the paths that were removed from it.
    """

    tree: str
    removed: frozenset[PurePosixPath]
    note: Path


def note_of(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.lower")


def lay_over(tree: str, directory: Path) -> None:
    """Makes a tree the lower layer of an empty directory."""
    note_of(directory).write_text(f"{tree}{_END}", encoding="ascii")


def lower_tree(directory: Path) -> LowerTree | None:
    """Returns the lower layer of a directory; None if all files are in the directory."""
    note = note_of(directory)
    try:
        tree, *removed = note.read_bytes().decode(errors="surrogateescape").split(_END)
    except FileNotFoundError:
        return None
    return LowerTree(tree, frozenset(map(PurePosixPath, filter(None, removed))), note)


def note_removed(path: PurePosixPath, note: Path) -> None:
    with note.open("ab") as stream:
        stream.write(f"{path}{_END}".encode(errors="surrogateescape"))
