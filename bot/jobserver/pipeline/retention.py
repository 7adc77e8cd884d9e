"""Archives finished jobs and later deletes them, with their files and branches."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from bot.jobapi.models import PullRequestState
from bot.jobserver.errors import JobServerError
from bot.jobserver.pipeline.tools import Tools
from bot.jobserver.pull_requests.interface import PullRequests
from bot.jobserver.store.jobs import BATCH_SIZE, JobStore
from bot.jobserver.store.uploads import UploadStore

logger = logging.getLogger(__name__)


async def remove_branches(
    jobs: JobStore, pull_requests: PullRequests, delete: Callable[[str], Awaitable[None]]
) -> None:
    """Deletes the recorded branches whose pull requests have ended; branches of open ones stay.

    A failure does not delay the others, and is retried for a week.
    """
    last, failures = "", list[str]()
    while names := await jobs.old_branches(after=last):
        for name in names:
            try:
                pull_request = await pull_requests.find(name)
                # An unknown one has ended and been forgotten.
                if pull_request is None or pull_request.state is not PullRequestState.OPEN:
                    await delete(name)
                await jobs.forget_branch(name)
            except JobServerError as error:
                failures.append(f"{name}: {error}")
        last = names[-1]
    if failures:
        logger.warning("%d old branches could not be deleted, the first is %s", len(failures), failures[0])
        await jobs.give_up_branches()


@dataclass(frozen=True)
class JobCleanup:
    """Archives jobs `archive_after` their end, and deletes them after another `keep_for`; local pull requests, too.

    A job whose plan waits is archived `keep_for` later.
    """

    tools: Tools
    jobs: JobStore
    uploads: UploadStore
    delete_pull_requests: Callable[[timedelta], Awaitable[int]]
    archive_after: timedelta
    keep_for: timedelta

    async def run(self) -> None:
        """Sweeps repeatedly; never returns."""
        shortest = min(self.archive_after, self.keep_for).total_seconds()
        pause = min(60.0, max(0.1, shortest / 10))
        while True:
            try:
                await self.sweep()
            except Exception:
                logger.exception("old jobs could not be archived or deleted; trying again")
            await asyncio.sleep(pause)

    async def sweep(self) -> None:
        """Archives and deletes everything that is old enough, in batches."""
        longer = self.archive_after + self.keep_for
        archived = await _in_batches(partial(self.jobs.archive, self.archive_after, longer))
        deleted = await _in_batches(self._delete_jobs)
        await self._remove_folders()
        await self._forget_branches()
        if archived or deleted:
            logger.info("%d finished jobs were archived, %d old ones deleted", archived, deleted)
        await _in_batches(self.jobs.delete_answers)
        await _in_batches(self.uploads.delete_unused)
        await _in_batches(self.tools.files.delete_expired)
        await _in_batches(partial(self.delete_pull_requests, self.archive_after + self.keep_for))
        await remove_branches(self.jobs, self.tools.pull_requests, self.tools.repository.delete_branch)
        await self.tools.repository.forget_partials(self.jobs.jobs_with_partial_work)
        if await self.tools.repository.mirror.pack():
            logger.info("the mirror of the repository was packed")

    async def _delete_jobs(self) -> int:
        batch = await self.jobs.jobs_to_delete(self.keep_for)
        await self.jobs.delete_jobs(batch)
        return len(batch)

    async def _remove_folders(self) -> None:
        """Removes what is here of deleted jobs, wherever they were deleted. Folders come after their rows."""
        for job_id in await self._deleted(await asyncio.to_thread(self.tools.folders.job_ids)):
            await asyncio.to_thread(self.tools.folders.delete, job_id)

    async def _forget_branches(self) -> None:
        """The same for the mirror, as far as another machine, or nobody, deletes a branch of the repository."""
        branches = await self.tools.repository.branches_of_jobs()
        gone = await self._deleted(list(branches.values()))
        for branch in (branch for branch, job_id in branches.items() if job_id in gone):
            await self.tools.repository.mirror.set_branch(branch, None)

    async def _deleted(self, job_ids: Sequence[str]) -> set[str]:
        parts = (job_ids[start : start + BATCH_SIZE] for start in range(0, len(job_ids), BATCH_SIZE))
        return {job_id for part in parts for job_id in await self.jobs.without_row(part)}


async def _in_batches(step: Callable[[], Awaitable[int]]) -> int:
    """Repeats a step until it has nothing to do; returns the total."""
    done = 0
    while count := await step():
        done += count
        await asyncio.sleep(0.05)
    return done
