"""The files of a documentation repository at one moment, wherever they lie."""

from pathlib import PurePosixPath
from typing import Protocol


class Snapshot(Protocol):
    """Paths are relative to the repository's root. Links, nested repositories and the git directory are left out."""

    def paths(self) -> tuple[PurePosixPath, ...]:
        """Returns all files, sorted."""
        ...

    def read(self, path: PurePosixPath) -> bytes | None:
        """Returns a file's contents; None where there is none, or it is larger than 5 MB."""
        ...
