"""What every step of the pipeline works with."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from bot.jobapi.models import CheckResult
from bot.jobserver.editors.interface import Editor
from bot.jobserver.leaks.scan import LeakScan, Masking
from bot.jobserver.pipeline.asking import Asking
from bot.jobserver.pipeline.budget import Spending
from bot.jobserver.pipeline.job_folders import JobFolders
from bot.jobserver.pull_requests.interface import PullRequests
from bot.jobserver.repository.git_repository import GitRepository
from bot.jobserver.repository.snapshot import Snapshot
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.proposals import ProposalStore


class Checks(Protocol):
    """Finds the faults that a change introduced."""

    async def run(
        self, before: Snapshot, after: Snapshot, changed: Collection[PurePosixPath], copy: Path
    ) -> tuple[CheckResult, ...]:
        """Returns a result for each check that applies. `copy` contains the same files as `after`. Never raises."""
        ...


@dataclass(frozen=True)
class Tools:
    """`takes_faults`: whether the editor can fix what the checks found; one that follows fixed patterns cannot."""

    repository: GitRepository
    queue: InstructionQueue
    folders: JobFolders
    editor: Editor
    checks: Checks
    scan: LeakScan
    masking: Masking
    pull_requests: PullRequests
    proposals: ProposalStore
    spending: Spending
    asking: Asking
    takes_faults: bool = True
