"""What local pull requests need of the repository's mirror."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from bot.jobserver.repository.git import Git


class Tip(Protocol):
    """A branch's newest commit."""

    @property
    def commit(self) -> str: ...


class Mirror(Protocol):
    """Where the commits are. The refs below `refs/pulls` are the pull requests' own."""

    git: Git
    directory: Path

    async def fetch(self, branch: str, *more: str) -> Mapping[str, Tip]:
        """Fetches branches and returns those that are there; those of `more` may be missing.

        Raises:
            GitError: the repository is out of reach, or has no such branch.
        """
        ...
