"""Executes one instruction: clone, edit, commit, push, pull request."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bot.jobserver.editors.interface import Editor, EditTask
from bot.jobserver.editors.job_log import append_line
from bot.jobserver.errors import JobServerError
from bot.jobserver.executor.descriptions import pull_request_description, subject
from bot.jobserver.executor.working_copy import WorkingCopy
from bot.jobserver.models import PlanStep, PullRequestState
from bot.jobserver.pull_requests.interface import NewPullRequest, PullRequests
from bot.jobserver.repository.git import Git
from bot.jobserver.sandbox.interface import Workspace
from bot.jobserver.sandbox.removal import remove_tree
from bot.jobserver.store.jobs import Instruction


class InstructionExecutor:
    """Gives each instruction a fresh clone, which is removed afterwards.

    `directory` holds a folder of clones and a folder of logs, one log a job.
    """

    def __init__(self, git: Git, editor: Editor, pull_requests: PullRequests, *, base: str, directory: Path) -> None:
        self._git = git
        self._editor = editor
        self._pull_requests = pull_requests
        self._base = base
        self._copies = directory / "copies"
        self._logs = directory / "logs"

    def prepare(self) -> None:
        """Makes the folders, and removes the clones that a killed server left."""
        remove_tree(self._copies)
        self._copies.mkdir(mode=0o700, exist_ok=True)
        self._logs.mkdir(mode=0o700, exist_ok=True)

    async def execute(self, instruction: Instruction) -> str | None:
        """Returns the pull request's link if the instruction changed anything, else None.

        Raises:
            JobServerError: the reason, also written to the job's log.
        """
        log = self._logs / f"{instruction.job_id}.log"
        scratch = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._copies, prefix=f"{instruction.job_id}-"))
        try:
            return await self._execute(instruction, scratch / "repository", log)
        except JobServerError as error:
            await asyncio.to_thread(append_line, log, f"failed: {error}")
            raise
        finally:
            await asyncio.shield(asyncio.to_thread(remove_tree, scratch))

    async def _execute(self, instruction: Instruction, directory: Path, log: Path) -> str | None:
        copy = await WorkingCopy.clone(self._git, directory, branch=instruction.branch, base=self._base)
        summary = ""
        if not await copy.is_done(instruction):
            await asyncio.to_thread(append_line, log, f"instruction {instruction.number} from {copy.start}")
            task = EditTask(instruction.prompt, Workspace(directory, directory.parent), log)
            summary = (await self._editor.edit(task, _Unheard())).summary
            if not await copy.commit(instruction):
                return None
            await copy.push(instruction.branch)
        return await self._open_or_update(instruction, summary)

    async def _open_or_update(self, instruction: Instruction, summary: str) -> str:
        description = pull_request_description(instruction.prompt, summary)
        existing = await self._pull_requests.find(instruction.branch)
        if existing is None or existing.state is not PullRequestState.OPEN:
            new = NewPullRequest(instruction.branch, subject(instruction.prompt), description)
            return (await self._pull_requests.open(new)).link
        await self._pull_requests.update(existing, description)
        return existing.link


class _Unheard:
    def plan(self, steps: Sequence[PlanStep]) -> None: ...

    def activity(self, title: str) -> None: ...

    def session(self, session_id: str) -> None: ...
