"""Composes the executor: what runs jobs, and what cleans up after them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from bot.jobserver.editors.interface import Editor
from bot.jobserver.executor.asking import Asking
from bot.jobserver.executor.budget import Spending
from bot.jobserver.executor.editing import Checks, Editing, PartialWorkKeeping
from bot.jobserver.executor.foreign_text import SecretGuard
from bot.jobserver.executor.instruction_executor import InstructionExecutor
from bot.jobserver.executor.job_folders import JobFolders
from bot.jobserver.executor.job_runner import JobRunner
from bot.jobserver.executor.proposing import Proposing
from bot.jobserver.executor.publishing import Publishing
from bot.jobserver.executor.retention import BranchRemoval, JobCleanup
from bot.jobserver.leaks.interface import LeakScan, Masking
from bot.jobserver.metrics import RunCounts
from bot.jobserver.pull_requests.interface import PullRequests
from bot.jobserver.repository.git_repository import GitRepository
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.store.database import Database
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.job_rows import QuestionStore
from bot.jobserver.store.proposals import ProposalStore
from bot.jobserver.store.retention import JobRetention
from bot.jobserver.store.uploads import UploadStore
from bot.runtime.tasks import BackgroundTasks


@dataclass(frozen=True)
class ExecutorDependencies:
    """What the executor works with. `takes_faults`: whether the editor can fix what the checks found.

    `caches` are folders in HOME that need not be kept.
    """

    repository: GitRepository
    editor: Editor
    checks: Checks
    pull_requests: PullRequests
    scan: LeakScan
    masking: Masking
    takes_faults: bool = True
    caches: tuple[str, ...] = ()
    counts: RunCounts = field(default_factory=RunCounts)


@asynccontextmanager
async def running_jobs(
    settings: JobServerSettings,
    database: Database,
    data: Path,
    dependencies: ExecutorDependencies,
    uploads: UploadStore,
    *,
    now: Callable[[], datetime],
) -> AsyncIterator[JobRunner]:
    """Runs the jobs of a database, interrupted ones first, and deletes old ones, until the block ends."""
    folders, queue = JobFolders(data, dependencies.caches), InstructionQueue(database, now=now)
    await asyncio.to_thread(folders.prepare)
    proposing = Proposing(
        dependencies.pull_requests, ProposalStore(database, now=now), dependencies.repository.is_ahead
    )
    counts = dependencies.counts
    spending = Spending(settings.budget, now=now, today=await queue.tokens_today(), took=counts.took)
    time_limit = settings.question_time_limit.total_seconds()
    asking = Asking(QuestionStore(database), dependencies.masking.known, time_limit=time_limit)
    executor = _executor(dependencies, queue, folders, proposing, spending=spending, asking=asking)
    runner = JobRunner(
        queue, executor, max_concurrent_jobs=settings.max_concurrent_jobs, arrived=asking.arrived, counts=counts
    )
    retained = JobRetention(database, now=now)
    retention = JobCleanup(
        retained,
        folders,
        BranchRemoval(retained, dependencies.repository, dependencies.pull_requests),
        dependencies.repository,
        uploads,
        archive_after=settings.archive_after,
        keep_for=settings.keep_for,
    )
    background = BackgroundTasks()
    try:
        await runner.start()
        background.spawn(retention.run(), name="retention")
        background.spawn(proposing.retry_forever(), name="proposal retries")
        yield runner
    finally:
        await background.cancel()
        await runner.stop()


def _executor(
    dependencies: ExecutorDependencies,
    queue: InstructionQueue,
    folders: JobFolders,
    proposing: Proposing,
    *,
    spending: Spending,
    asking: Asking,
) -> InstructionExecutor:
    repository, masking = dependencies.repository, dependencies.masking
    editing = Editing(
        repository,
        dependencies.editor,
        dependencies.checks,
        queue,
        folders,
        PartialWorkKeeping(repository, queue, folders, masking),
        masking,
        spending,
        asking,
        dependencies.takes_faults,
    )
    publishing = Publishing(repository, dependencies.pull_requests, queue, proposing, masking)
    return InstructionExecutor(editing, publishing, SecretGuard(dependencies.scan))
