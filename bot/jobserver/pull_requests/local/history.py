"""Compares a pull request's commits with the base branch, and merges them."""

from bot.jobserver.errors import MergeError
from bot.jobserver.repository.git import GitResult
from bot.jobserver.repository.mirror import Mirror

_CONFLICT = 1  # the exit code of `git merge-tree`


class History:
    """The commits in the mirror; the refs below `refs/pulls` are the pull requests' own.

    Not safe for concurrent use: whoever calls holds a lock.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._git = mirror.git
        self._mirror = mirror

    async def fetch(self, base: str, branch: str) -> tuple[str, str | None]:
        """Fetches two branches and returns their newest commits; None for the second where it is not there.

        Raises:
            GitError: the repository is out of reach, or has no branch `base`.
        """
        tips = await self._mirror.fetch(base, branch)
        return tips[base].commit, tips[branch].commit if branch in tips else None

    async def keep_commits(self, number: int, head: str) -> None:
        """Holds on to a pull request's commits, even if its branch is deleted."""
        await self._run("update-ref", f"refs/pulls/{number}/head", head)

    async def drop_commits(self, number: int) -> None:
        """Lets go of them."""
        await self._run("update-ref", "-d", f"refs/pulls/{number}/head")

    async def merge_base(self, base: str, head: str) -> str:
        """Returns the commit where the two parted; the base where they have nothing in common."""
        result = await self._git.try_run(self._mirror.directory, "merge-base", base, head)
        return result.output.strip() or base

    async def merge(self, head: str, base: str, message: str) -> None:
        """Merges a commit into the newest commit of the base branch, without a working copy, and pushes it.

        Raises:
            MergeError: with a message for the page; nothing was changed.
            GitError: the repository is out of reach.
        """
        newest = (await self._mirror.fetch(base))[base].commit
        merged = await self._git.try_run(
            self._mirror.directory, "merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", newest, head
        )
        if merged.exit_code:
            raise MergeError(_conflict_message(merged, base))
        tree = merged.output.rstrip("\0")
        commit = await self._run("commit-tree", tree, "-p", newest, "-p", head, "-F", "-", stdin=message.encode())
        pushed = await self._git.push(self._mirror.directory, commit.strip(), base)
        if pushed.exit_code:
            raise MergeError(_push_message(pushed.errors, base))

    async def _run(self, *arguments: str, stdin: bytes = b"") -> str:
        return await self._git.run(self._mirror.directory, *arguments, stdin=stdin)


def _conflict_message(merged: GitResult, base: str) -> str:
    files = [name for name in merged.output.split("\0")[1:] if name]
    if merged.exit_code != _CONFLICT or not files:
        return f"git could not merge this: {merged.errors.strip()[-300:]}"
    return (
        f"This cannot be merged by itself: {base} has changed the same lines in {', '.join(files[:10])}. "
        "Merge it by hand with git, or ask for the change again in a new job."
    )


def _push_message(errors: str, base: str) -> str:
    if "non-fast-forward" in errors or "fetch first" in errors or "cannot lock ref" in errors:
        return f"{base} has just changed. Please try again."
    if "unstaged changes" in errors or "uncommitted" in errors or "Working directory" in errors:
        return (
            f"The repository's working copy of {base} has changes that are not committed. Commit them, then try again."
        )
    return f"The repository did not take the merge: {' '.join(errors.split())[-300:]}"
