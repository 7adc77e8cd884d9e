"""The files of a commit."""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Protocol


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
