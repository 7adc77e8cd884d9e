"""The repository that jobs work on: one bare mirror, and a plain directory of files for each job."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.jobapi.models import Changes, FileChange
from bot.jobserver.errors import GitError
from bot.jobserver.repository.git import printable
from bot.jobserver.repository.mirror import Mirror, Tip, TreeSnapshot
from bot.jobserver.repository.working_copy import ChangeLimits, WorkingCopy

_LISTED_AT_MOST = 300
"""Files that are listed; all are counted."""

_SEARCHED = 10_000
"""Commits of a branch, with those of its base, that are searched."""
_PARTIAL = "refs/pagehand/partial/"
_JOB = "pagehand/"
_OF_JOBS = f"refs/heads/{_JOB}"


@dataclass(frozen=True)
class StartingPoint:
    """The state of the repository that an instruction starts from.

    `parents` are the parents of the instruction's commit; the first is on the job's branch. `tree` is the git tree to
    check out: the branch's files, merged with the base where that was clean. `base` is the commit of the base branch,
    `tip` that of the job's, empty if there is none. `note` says what was done, or could not be done, to bring the
    branch up to date; it is empty if nothing was needed.
    """

    parents: tuple[str, ...]
    tree: str
    base: str
    tip: str
    note: str = ""


class GitRepository:
    """The repository that jobs work on. All methods raise GitError."""

    def __init__(self, mirror: Mirror, base: str, limits: ChangeLimits) -> None:
        self.mirror = mirror
        self._base = base
        self._limits = limits

    async def start(self, branch: str) -> StartingPoint:
        """Fetches the base and the branch; a branch that does not exist yet starts at the base."""
        tips = await self.mirror.fetch(self._base, branch)
        base, head = tips[self._base], tips.get(branch)
        parted = await self.mirror.merge_base(base.commit, head.commit) if head else ""
        if head is None or parted == head.commit:
            return StartingPoint((base.commit,), base.tree, base.commit, head.commit if head else "")
        if parted == base.commit:
            return StartingPoint((head.commit,), head.tree, base.commit, head.commit)
        return await self._brought_up_to_date(branch, head, base.commit)

    async def is_ahead(self, branch: str) -> bool:
        """Fetches both, and returns whether the branch has commits that the base lacks."""
        start = await self.start(branch)
        return start.parents[0] != start.base

    async def _brought_up_to_date(self, branch: str, head: Tip, base: str) -> StartingPoint:
        """Merges the base into a branch that is behind it; if there are conflicts, leaves the branch alone."""
        merged = await self.mirror.merge(head.commit, base)
        if merged.conflicts:
            named = ", ".join(f"`{printable(name)}`" for name in merged.conflicts[:5])
            note = f"the branch is behind {self._base}, and both changed {named}, so it was not updated"
            return StartingPoint((head.commit,), head.tree, base, head.commit, note)
        message = f"Merge {self._base} into {branch}\n"
        commit = await self.mirror.commit((head.commit, base), merged.tree, message)
        return StartingPoint((commit,), merged.tree, base, head.commit, f"{self._base} was merged into the branch")

    def working_copy(self, directory: Path) -> WorkingCopy:
        return WorkingCopy(self.mirror, directory, self._limits)

    async def commit(self, start: StartingPoint, tree: str, message: str) -> str:
        """Commits a tree and returns the commit's id."""
        return await self.mirror.commit(start.parents, tree, message)

    async def push(self, commit: str, branch: str, tip: str) -> None:
        """Pushes a commit to a branch. Raises PushRejectedError if that is not at this tip any more."""
        await self.mirror.git.push(self.mirror.directory, commit, branch, tip)
        await self.mirror.set_branch(branch, commit)

    async def applied(self, commit: str, tree: str) -> str | None:
        """Returns a tree with the change that `commit` made; None if both changed the same lines.

        The merged commits have no history, so that nothing else from the branch of `commit` comes back.
        """
        root = await self.mirror.commit((), await self.mirror.tree_of(f"{commit}^"), "Before\n")
        now = await self.mirror.commit((root,), tree, "Now\n")
        change = await self.mirror.commit((root,), await self.mirror.tree_of(commit), "Change\n")
        merged = await self.mirror.merge(now, change)
        return None if merged.conflicts else merged.tree

    async def delete_branch(self, branch: str) -> None:
        """Deletes a branch of the repository and of the mirror, if it exists."""
        try:
            await self.mirror.git.push(self.mirror.directory, "", branch)
        except GitError as error:
            if "remote ref does not exist" not in str(error):
                raise
        await self.mirror.set_branch(branch, None)

    async def keep_partial(self, job_id: str, commit: str) -> None:
        """Keeps a commit that was not pushed, in place of the job's previous one."""
        await self.mirror.run("update-ref", f"{_PARTIAL}{job_id}", commit)

    async def has_partial(self, commit: str) -> bool:
        """Whether the mirror has a commit that was not pushed, and the one before it."""
        found = [await self.mirror.try_run("cat-file", "-e", f"{each}^{{tree}}") for each in (commit, f"{commit}^")]
        return not any(result.exit_code for result in found)

    async def bundle(self, job_id: str, base: str, target: Path, largest: int) -> None:
        """Writes a job's kept commit to a file, without what leads to `base`; GitError if that has too many bytes."""
        revisions = (f"{_PARTIAL}{job_id}", f"^{base}")
        if int(await self.mirror.run("rev-list", "--objects", "--disk-usage", *revisions)) > largest:
            raise GitError(f"it is larger than {largest / 1e6:g} MB")
        await self.mirror.run("bundle", "create", "--quiet", str(target), *revisions)

    async def unbundle(self, job_id: str, commit: str, source: Path) -> None:
        """Keeps a commit that another machine wrote to a file."""
        await self.mirror.run("bundle", "unbundle", str(source))
        await self.keep_partial(job_id, commit)

    async def forget_partials(self, kept: Callable[[], Awaitable[Collection[str]]]) -> None:
        """Drops those of all jobs except the ones that `kept` returns."""

        async def names() -> Collection[str]:
            return {f"{_PARTIAL}{job_id}" for job_id in await kept()}

        await self.mirror.forget(_PARTIAL, names)

    async def branches_of_jobs(self) -> dict[str, str]:
        """Returns the branches of jobs that the mirror has, each with its job's id."""
        listed = await self.mirror.names(_OF_JOBS, "refname:strip=2")
        of_jobs = (branch for branch in listed if branch != self._base)
        return {branch: branch.partition("/")[2].partition("-")[0] for branch in of_jobs}

    async def put_back(self, commit: str, tree: str, directory: Path) -> bool:
        """Applies the change that `commit` made to a directory into which `tree` was checked out.

        Returns False and changes nothing if both changed the same lines.
        """
        merged = await self.applied(commit, tree)
        if merged is not None:
            await self.working_copy(directory).change_to(merged)
        return merged is not None

    async def with_trailer(self, branch: str, key: str, value: str) -> str | None:
        """Returns the newest of a branch's commits whose message has this trailer, as of the last fetch or push."""
        newest = await self.mirror.revision(branch)
        if newest is None:
            return None
        form = f"--format=%H %(trailers:key={key},valueonly,separator=%x20)"
        listed = await self.mirror.run("log", f"--max-count={_SEARCHED}", form, newest, "--")
        return next((line.split()[0] for line in listed.splitlines() if line.split()[1:] == [value]), None)

    async def changes(self, start: str, end: str) -> Changes:
        """Returns what a pull request of `end` into `start` changes, without the titles of pages."""
        try:
            files = await self.mirror.changed_files(f"{start}...{end}")
        except GitError:  # they have no commit in common
            files = await self.mirror.changed_files(start, end)
        listed = (
            FileChange(path=printable(file.path), kind=file.kind, added=file.added, removed=file.removed)
            for file in files[:_LISTED_AT_MOST]
        )
        return Changes(
            files=tuple(listed),
            file_count=len(files),
            added=sum(file.added or 0 for file in files),
            removed=sum(file.removed or 0 for file in files),
        )

    async def file_of_job(self, job_id: str, commit: str, path: str) -> bytes | None:
        """Returns a file of a commit on a job's branch, even if another machine pushed it; None if there is none."""
        if (await self.mirror.try_run("cat-file", "-e", f"{commit}^{{commit}}")).exit_code:
            await self.mirror.fetch(self._base, f"{_JOB}{job_id}")
        return await asyncio.to_thread(self.snapshot(commit).read, PurePosixPath(path))

    def snapshot(self, tree: str) -> TreeSnapshot:
        """Returns the files of a tree or commit."""
        return TreeSnapshot(self.mirror, tree)
