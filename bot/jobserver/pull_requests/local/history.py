"""Compares a pull request's commits with the base branch, and merges them."""

from bot.jobserver.errors import GitError, MergeError
from bot.jobserver.repository.mirror import Mirror


class History:
    """The commits in the mirror; pull requests have refs below `refs/pulls`.

    Not safe for concurrent use, so callers must hold a lock.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    async def fetch(self, base: str, branch: str) -> tuple[str, str | None]:
        """Fetches two branches and returns their newest commits; None for the second if it does not exist.

        Raises:
            GitError: the repository is unreachable, or has no branch `base`.
        """
        tips = await self._mirror.fetch(base, branch)
        return tips[base].commit, tips[branch].commit if branch in tips else None

    async def keep_commits(self, number: int, head: str) -> None:
        """Keeps a pull request's commits even if its branch is deleted."""
        await self._mirror.run("update-ref", f"refs/pulls/{number}/head", head)

    async def drop_commits(self, number: int) -> None:
        """Drops the reference to a pull request's commits."""
        await self._mirror.run("update-ref", "-d", f"refs/pulls/{number}/head")

    async def merge_base(self, base: str, head: str) -> str:
        """Returns the common ancestor of the two; the base if there is none."""
        return await self._mirror.merge_base(base, head) or base

    async def merge(self, head: str, base: str, message: str) -> None:
        """Merges a commit into the newest commit of the base branch, without a working copy, and pushes it.

        Raises:
            MergeError: nothing was changed; the message is for the page.
            GitError: the repository is unreachable.
        """
        newest = (await self._mirror.fetch(base))[base].commit
        try:
            merged = await self._mirror.merge(newest, head)
        except GitError as error:
            raise MergeError(f"git could not merge this: {error}") from error
        if merged.conflicts:
            raise MergeError(
                f"This cannot be merged automatically: {base} has changed the same lines in "
                f"{', '.join(merged.conflicts[:10])}. "
                "Merge it by hand with git, or ask for the change again in a new job."
            )
        commit = await self._mirror.commit((newest, head), merged.tree, message)
        pushed = await self._mirror.git.push(self._mirror.directory, commit, base)
        if pushed.exit_code:
            raise MergeError(_push_message(pushed.errors, base))


def _push_message(errors: str, base: str) -> str:
    if "non-fast-forward" in errors or "fetch first" in errors or "cannot lock ref" in errors:
        return f"{base} has just changed. Please try again."
    if "unstaged changes" in errors or "uncommitted" in errors or "Working directory" in errors:
        return (
            f"The repository's working copy of {base} has changes that are not committed. Commit them, then try again."
        )
    return f"The repository did not take the merge: {' '.join(errors.split())[-300:]}"
