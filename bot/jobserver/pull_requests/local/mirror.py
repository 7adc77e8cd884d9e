"""A bare clone that keeps the commits of pull requests, so that they outlive their branches."""

import tempfile
from pathlib import Path
from typing import Protocol

from bot.jobserver.errors import GitError
from bot.jobserver.repository.git import Git


class Mirror(Protocol):
    """Where the commits are. Not safe for concurrent use: whoever calls `fetch` holds a lock."""

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


class BareMirror:
    """A mirror of its own, made when it is first needed."""

    def __init__(self, git: Git, directory: Path) -> None:
        self._git = git
        self._directory = directory

    @property
    def directory(self) -> Path:
        return self._directory

    async def fetch(self, branch: str) -> str:
        if not self._directory.exists():
            await self._make()
        ref = f"refs/heads/{branch}"
        await self._git.run(
            self._directory, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
            "--", self._git.address, f"+{ref}:{ref}",
        )  # fmt: skip
        commit = await self._git.revision(self._directory, ref)
        if commit is None:
            raise GitError(f"the branch {branch} is not in the repository")
        return commit

    async def _make(self) -> None:
        with tempfile.TemporaryDirectory(dir=self._directory.parent, prefix="mirror-") as scratch:
            made = Path(scratch) / "mirror.git"
            await self._git.run(self._directory.parent, "init", "--quiet", "--bare", "--template=", str(made))
            made.rename(self._directory)
