"""A bare clone that keeps the commits of pull requests, so that they outlive their branches."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.jobserver.errors import GitError, MergeError
from bot.jobserver.repository.git import Git, printable

# Names the heading above a change instead of any line; git knows these two by itself.
_ATTRIBUTES = "*.md diff=markdown\n*.mdx diff=markdown\n*.html diff=html\n"
_DIFF_LIMIT = 2_000_000
_COMMIT_LIMIT = 250


@dataclass(frozen=True)
class Commit:
    """One commit of a pull request."""

    id: str
    author: str
    written_at: datetime
    subject: str


class Mirror:
    """Not safe for concurrent use: whoever calls holds a lock."""

    def __init__(self, git: Git, directory: Path) -> None:
        self._git = git
        self._directory = directory

    async def fetch(self, branch: str) -> str:
        """Fetches a branch and returns its newest commit; makes the mirror where there is none.

        Raises:
            GitError: the repository is out of reach, or has no such branch.
        """
        if not self._directory.exists():
            await self._make()
        ref = f"refs/heads/{branch}"
        await self._run(
            "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
            "--", self._git.address, f"+{ref}:{ref}",
        )  # fmt: skip
        commit = await self._git.revision(self._directory, ref)
        if commit is None:
            raise GitError(f"the branch {branch} is not in the repository")
        return commit

    async def keep_commits(self, number: int, head: str) -> None:
        """Holds on to a pull request's commits, whatever becomes of its branch."""
        await self._run("update-ref", f"refs/pulls/{number}/head", head)

    async def is_merged(self, head: str, base: str) -> bool:
        return await self._git.succeeds(self._directory, "merge-base", "--is-ancestor", head, base)

    async def merge_base(self, base: str, head: str) -> str:
        """Returns the commit where the two parted; the base where they have nothing in common."""
        result = await self._git.try_run(self._directory, "merge-base", base, head)
        return result.output.strip() or base

    async def commits(self, start: str, end: str) -> tuple[Commit, ...]:
        """Returns at most 250 commits, the oldest first, without merges."""
        log = await self._run(
            "log", "-z", "--reverse", "--no-merges", f"--max-count={_COMMIT_LIMIT}",
            "--format=%H%x00%an%x00%cI%x00%s", f"{start}..{end}", "--",
        )  # fmt: skip
        return _parse_log(printable(log))

    async def diff(self, start: str, end: str) -> str:
        """Returns a unified diff, cut off at 2 MB."""
        result = await self._git.try_run(
            self._directory, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames",
            "--src-prefix=a/", "--dst-prefix=b/", f"{start}..{end}", "--",
        )  # fmt: skip
        return printable(result.output[:_DIFF_LIMIT])

    async def merge(self, head: str, base: str, message: str) -> None:
        """Merges a commit into the base branch and pushes it.

        Raises:
            MergeError: with a message for the page; nothing was changed.
        """
        async with self._worktree(base) as worktree:
            merged = await self._git.try_run(
                worktree, "merge", "--quiet", "--no-ff", "--no-verify", "-m", message, head
            )
            if merged.exit_code:
                raise MergeError(await self._conflict_message(worktree, base, merged.errors))
            pushed = await self._git.push(worktree, "HEAD", base)
            if pushed.exit_code:
                raise MergeError(_push_message(pushed.errors, base))

    @asynccontextmanager
    async def _worktree(self, base: str) -> AsyncIterator[Path]:
        with tempfile.TemporaryDirectory(dir=self._directory.parent, prefix="merge-") as scratch:
            worktree = Path(scratch) / "copy"
            await self._run("worktree", "add", "--quiet", "--detach", str(worktree), f"refs/heads/{base}")
            try:
                yield worktree
            finally:
                await asyncio.to_thread(shutil.rmtree, worktree, ignore_errors=True)
                await self._run("worktree", "prune")

    async def _conflict_message(self, worktree: Path, base: str, errors: str) -> str:
        listed = await self._git.run(worktree, "diff", "--name-only", "--diff-filter=U", "-z")
        files = [name for name in listed.split("\0") if name]
        if not files:
            return f"git could not merge this: {errors.strip()[-300:]}"
        return (
            f"This cannot be merged by itself: {base} has changed the same lines in {', '.join(files[:10])}. "
            "Merge it by hand with git, or ask for the change again in a new job."
        )

    async def _make(self) -> None:
        with tempfile.TemporaryDirectory(dir=self._directory.parent, prefix="mirror-") as scratch:
            made = Path(scratch) / "mirror.git"
            await self._git.run(self._directory.parent, "init", "--quiet", "--bare", "--template=", str(made))
            (made / "info").mkdir(exist_ok=True)
            (made / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
            made.rename(self._directory)

    async def _run(self, *arguments: str) -> str:
        return await self._git.run(self._directory, *arguments)


def _parse_log(log: str) -> tuple[Commit, ...]:
    fields = log.rstrip("\0").split("\0") if log else []
    commits = [fields[start : start + 4] for start in range(0, len(fields) - 3, 4)]
    return tuple(
        Commit(commit, author, datetime.fromisoformat(written_at), subject)
        for commit, author, written_at, subject in commits
    )


def _push_message(errors: str, base: str) -> str:
    if "non-fast-forward" in errors or "fetch first" in errors or "cannot lock ref" in errors:
        return f"{base} has just changed. Please try again."
    if "unstaged changes" in errors or "uncommitted" in errors or "Working directory" in errors:
        return (
            f"The repository's working copy of {base} has changes that are not committed. Commit them, then try again."
        )
    return f"The repository did not take the merge: {' '.join(errors.split())[-300:]}"
