"""A bare copy of the repository, kept between jobs: all of them share its objects."""

import asyncio
import tempfile
from pathlib import Path

from bot.jobserver.errors import GitError
from bot.jobserver.repository.git import Git

# Names the heading above a change instead of any line; git knows these two by itself.
_ATTRIBUTES = "*.md diff=markdown\n*.mdx diff=markdown\n*.html diff=html\n"


class Mirror:
    """The bare repository in `directory`; whatever changes its branches waits for its turn."""

    def __init__(self, git: Git, directory: Path) -> None:
        self.git = git
        self.directory = directory
        self._lock = asyncio.Lock()

    async def fetch(self, branch: str, *more: str) -> str:
        """Fetches branches and returns the first one's newest commit; those of `more` may be missing.

        Raises:
            GitError: the repository is out of reach, or has no such branch.
        """
        async with self._lock:
            await self._ensure_made()
            # A pattern that matches nothing is no error to git; the branch that has to be there is named outright.
            refspecs = [_refspec(branch), *(_refspec(f"{name}*") for name in more)]
            await self.run(
                "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--prune",
                "--", self.git.address, *refspecs,
            )  # fmt: skip
        commit = await self.revision(branch)
        if commit is None:
            raise GitError(f"the branch {branch} is not in the repository")
        return commit

    async def revision(self, branch: str) -> str | None:
        """Returns a branch's newest commit as it was fetched or pushed last."""
        return await self.git.revision(self.directory, f"refs/heads/{branch}")

    async def set_branch(self, branch: str, commit: str | None) -> None:
        """Notes what became of a branch: pushed, or deleted."""
        async with self._lock:
            target = (commit,) if commit else ()
            await self.run("update-ref", *(() if commit else ("-d",)), f"refs/heads/{branch}", *target)

    async def pack(self) -> None:
        """Packs what has come together, and drops what nothing has named for two weeks."""
        if self.directory.exists():
            await self.run("gc", "--quiet", "--prune=2.weeks.ago")

    async def run(self, *arguments: str) -> str:
        return await self.git.run(self.directory, *arguments)

    async def _ensure_made(self) -> None:
        if self.directory.exists():
            return
        with tempfile.TemporaryDirectory(dir=self.directory.parent, prefix="mirror-") as scratch:
            made = Path(scratch) / "mirror.git"
            await self.git.run(self.directory.parent, "init", "--quiet", "--bare", "--template=", str(made))
            (made / "info").mkdir(exist_ok=True)
            (made / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
            made.rename(self.directory)


def _refspec(branch: str) -> str:
    return f"+refs/heads/{branch}:refs/heads/{branch}"
