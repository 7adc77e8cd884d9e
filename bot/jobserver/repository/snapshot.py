"""A repository's files at one moment; and copies whose unchanged files stay in git."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

_END = "\0"


class Snapshot(Protocol):
    """Paths are relative to the repository's root. Links, nested repositories and the git directory are left out."""

    def paths(self) -> tuple[PurePosixPath, ...]:
        """Returns all files, sorted."""
        ...

    def read(self, path: PurePosixPath) -> bytes | None:
        """Returns a file's contents; None where there is none, or it is larger than 5 MB."""
        ...

    def read_all(self, paths: Iterable[PurePosixPath]) -> Iterator[tuple[PurePosixPath, bytes]]:
        """Yields those of the files that `read` would return, one after another, at the cost of one program.

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

    The copy's directory is the upper layer: what lies there was written. `note`, a file beside it, names the tree of
    git and what was removed of that.
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
    """Returns the lower layer of a directory; None where all of its files lie in it."""
    note = note_of(directory)
    try:
        tree, *removed = note.read_bytes().decode(errors="surrogateescape").split(_END)
    except FileNotFoundError:
        return None
    return LowerTree(tree, frozenset(map(PurePosixPath, filter(None, removed))), note)


def note_removed(path: PurePosixPath, note: Path) -> None:
    with note.open("ab") as stream:
        stream.write(f"{path}{_END}".encode(errors="surrogateescape"))
