"""The files of a documentation repository at one moment, wherever they lie."""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Protocol


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
