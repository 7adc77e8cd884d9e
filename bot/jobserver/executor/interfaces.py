"""What the executor needs of its dependencies, besides their own interfaces."""

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path, PurePosixPath
from typing import Protocol

from bot.jobserver.models import CheckResult
from bot.jobserver.repository.interface import Repository
from bot.jobserver.repository.snapshot import Snapshot
from bot.jobserver.store.records import Instruction, Outcome


class JobRepository(Repository, Protocol):
    """A repository whose branches can be merged, and deleted in the end."""

    async def merge(self, first: str, second: str) -> str | None:
        """Returns the tree of a merge of two commits; None where both changed the same lines. Raises GitError."""
        ...

    async def delete_branch(self, branch: str) -> None:
        """Deletes a branch, if it is there. Raises GitError."""
        ...

    async def keep_partial(self, job_id: str, commit: str) -> None:
        """Keeps a commit that is pushed nowhere, in place of the job's last one. Raises GitError."""
        ...

    async def forget_partials(self, kept: Callable[[], Awaitable[Collection[str]]]) -> None:
        """Forgets those of all jobs but what `kept` returns, which is asked after they were listed. Raises GitError."""
        ...

    async def put_back(self, commit: str, tree: str, directory: Path) -> bool:
        """Changes the files of a directory into which `tree` was checked out as `commit` changed its parent's.

        Returns False, and changes nothing, where both changed the same lines. Raises GitError.
        """
        ...

    async def pack(self) -> bool:
        """Makes what is kept of the repository small again, if that is worth it; returns whether it did."""
        ...


class Executor(Protocol):
    """What the runner needs of whoever executes instructions."""

    async def execute(self, instruction: Instruction) -> Outcome:
        """Executes it. Cancelling ends it within 5 s; where it was just being pushed, it may still return.

        Raises:
            JobServerError: why it failed.
        """
        ...

    async def finish_pushed(self, instruction: Instruction) -> Outcome:
        """Finishes what an interrupted instruction has pushed, and executes nothing."""
        ...


class Checks(Protocol):
    """Finds the faults that a change brought in."""

    async def run(
        self, before: Snapshot, after: Snapshot, changed: Collection[PurePosixPath], copy: Path
    ) -> tuple[CheckResult, ...]:
        """Returns one result a check that applies. `copy` holds the same files as `after`. Never raises."""
        ...
