"""What every step of the pipeline works with, and what one hands to the next."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.jobapi.models import Changes, CheckResult, JobDetails
from bot.jobserver.editors.interface import Editor, EditResult, EditTask
from bot.jobserver.leaks.own_secrets import OwnSecrets
from bot.jobserver.leaks.scan import FindLeaks
from bot.jobserver.pipeline.budget import Spending
from bot.jobserver.pipeline.descriptions import answer_with
from bot.jobserver.pipeline.handover import Handover
from bot.jobserver.pipeline.job_folders import JobFolders
from bot.jobserver.pipeline.progress import Asking
from bot.jobserver.pull_requests.interface import OpenedPullRequest, PullRequests
from bot.jobserver.repository.git_repository import GitRepository, StartingPoint
from bot.jobserver.repository.listings import Snapshot
from bot.jobserver.store.files import FileStore
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.proposals import ProposalStore
from bot.jobserver.store.records import Instruction

Check = Callable[[Snapshot, Snapshot, Collection[PurePosixPath], Path], Awaitable[tuple[CheckResult, ...]]]
"""Finds the faults that a change introduced: `DocumentationChecks.run`."""


@dataclass(frozen=True)
class Tools:
    """`takes_faults`: whether the editor can fix what the checks found; one that follows fixed patterns cannot.
    `handover`: None where there is but one machine.
    """

    repository: GitRepository
    queue: InstructionQueue
    folders: JobFolders
    files: FileStore
    editor: Editor
    check: Check
    find_leaks: FindLeaks
    known: Callable[[], OwnSecrets]
    pull_requests: PullRequests
    proposals: ProposalStore
    spending: Spending
    asking: Asking
    takes_faults: bool = True
    handover: Handover | None = None

    @property
    def masking(self) -> OwnSecrets:
        """This server's current secrets."""
        return self.known()


@dataclass(frozen=True)
class Prepared:
    """An instruction that can be edited. `message` is that of its commit, `pull_request` the job's newest, if any."""

    instruction: Instruction
    start: StartingPoint
    task: EditTask
    message: str
    pull_request: OpenedPullRequest | None


@dataclass(frozen=True)
class Edited:
    """The result of editing. `commit` is not pushed yet; it is empty if nothing changed."""

    result: EditResult
    commit: str = ""
    changes: Changes | None = None
    left_out: tuple[str, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    notes: tuple[str, ...] = ()
    session: str | None = None

    @property
    def details(self) -> JobDetails:
        """What the editor said, for the job's details."""
        return JobDetails(
            summary=answer_with(self.result.summary, self.left_out, self.result.notes),
            question=self.result.question or None,
            question_fields=self.result.question_fields,
        )
