"""What local pull requests need of the repository's mirror."""

from pathlib import Path
from typing import Protocol

from bot.jobserver.repository.git import Git


class Mirror(Protocol):
    """Where the commits are. The refs below `refs/pulls` are the pull requests' own."""

    git: Git
    directory: Path

    async def fetch(self, branch: str) -> str:
        """Fetches a branch and returns its newest commit.

        Raises:
            GitError: the repository is out of reach, or has no such branch.
        """
        ...
