"""What the local pull requests need of the mirror of the repository."""

from pathlib import Path
from typing import Protocol


class Mirror(Protocol):
    """Where the commits are."""

    @property
    def directory(self) -> Path:
        """A bare repository; it is there once something was fetched."""
        ...

    async def fetch(self, branch: str) -> str:
        """Fetches a branch and returns its newest commit.

        Raises:
            GitError: the repository is out of reach, or has no such branch.
        """
        ...
