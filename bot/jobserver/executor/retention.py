"""Archives finished jobs and later deletes them, with their files and branches."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Protocol

from bot.jobserver.errors import JobServerError
from bot.jobserver.executor.job_folders import JobFolders
from bot.jobserver.models import PullRequestState
from bot.jobserver.pull_requests.interface import PullRequests
from bot.jobserver.repository.git_repository import GitRepository
from bot.jobserver.store.retention import JobRetention
from bot.jobserver.store.uploads import UploadStore

logger = logging.getLogger(__name__)
_MAX_PAUSE_S = 60.0
_BETWEEN_BATCHES_S = 0.05


class Branches(Protocol):
    """The part of a repository that `BranchRemoval` needs."""

    async def delete_branch(self, branch: str) -> None: ...


class BranchRemoval:
    """Deletes branches whose pull requests have ended; branches of open ones stay."""

    def __init__(self, jobs: JobRetention, branches: Branches, pull_requests: PullRequests) -> None:
        self._jobs = jobs
        self._branches = branches
        self._pull_requests = pull_requests

    async def run(self) -> None:
        """Tries all recorded branches; a failure does not delay the others, and is retried for a week."""
        last, failures = "", list[str]()
        while names := await self._jobs.old_branches(after=last):
            for name in names:
                try:
                    await self._delete(name)
                except JobServerError as error:
                    failures.append(f"{name}: {error}")
            last = names[-1]
        if failures:
            logger.warning("%d old branches could not be deleted, the first is %s", len(failures), failures[0])
            await self._jobs.give_up_branches()

    async def _delete(self, name: str) -> None:
        """Deletes a branch unless its pull request is open; an unknown one has ended and been forgotten."""
        pull_request = await self._pull_requests.find(name)
        if pull_request is None or pull_request.state is not PullRequestState.OPEN:
            await self._branches.delete_branch(name)
        await self._jobs.forget_branch(name)


class JobCleanup:
    """Archives jobs `archive_after` their end, and deletes them after another `keep_for`."""

    def __init__(
        self,
        jobs: JobRetention,
        folders: JobFolders,
        branches: BranchRemoval,
        repository: GitRepository,
        uploads: UploadStore,
        *,
        archive_after: timedelta,
        keep_for: timedelta,
    ) -> None:
        self._jobs = jobs
        self._folders = folders
        self._branches = branches
        self._repository = repository
        self._uploads = uploads
        self._archive_after = archive_after
        self._keep_for = keep_for

    async def run(self) -> None:
        """Sweeps repeatedly; never returns."""
        shortest = min(self._archive_after, self._keep_for).total_seconds()
        pause = min(_MAX_PAUSE_S, max(0.1, shortest / 10))
        while True:
            try:
                await self.sweep()
            except Exception:
                logger.exception("old jobs could not be archived or deleted; trying again")
            await asyncio.sleep(pause)

    async def sweep(self) -> None:
        """Archives and deletes everything that is old enough, in batches."""
        archived = await _in_batches(partial(self._jobs.archive, self._archive_after))
        deleted = await _in_batches(self._delete_jobs)
        if archived or deleted:
            logger.info("%d finished jobs were archived, %d old ones deleted", archived, deleted)
        await _in_batches(self._jobs.delete_answers)
        await _in_batches(self._uploads.delete_unused)
        await self._branches.run()
        await self._repository.forget_partials(self._jobs.jobs_with_partial_work)
        if await self._repository.pack():
            logger.info("the mirror of the repository was packed")

    async def _delete_jobs(self) -> int:
        """Deletes the folders first: after a crash, the row still leads to the remaining ones."""
        batch = await self._jobs.jobs_to_delete(self._keep_for)
        await asyncio.to_thread(self._delete_folders, batch)
        await self._jobs.delete_jobs(batch)
        return len(batch)

    def _delete_folders(self, job_ids: list[str]) -> None:
        for job_id in job_ids:
            self._folders.delete(job_id)


async def _in_batches(step: Callable[[], Awaitable[int]]) -> int:
    """Repeats a step until it has nothing to do; returns the total."""
    done = 0
    while count := await step():
        done += count
        await asyncio.sleep(_BETWEEN_BATCHES_S)
    return done
