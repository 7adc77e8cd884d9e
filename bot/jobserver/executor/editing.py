"""Runs the editor on a copy, collects the change, checks it and commits it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol

from bot.jobserver.editors.interface import Editor, EditResult, EditTask, Exchange
from bot.jobserver.editors.job_log import append_line
from bot.jobserver.errors import BudgetUsedUpError, EditError, JobServerError
from bot.jobserver.executor.asking import Asking
from bot.jobserver.executor.budget import Allowance, Spending
from bot.jobserver.executor.descriptions import answer_with, commit_message, task_from_checks, with_titles
from bot.jobserver.executor.foreign_text import described, masked_checks, masked_update, safe_result
from bot.jobserver.executor.job_folders import JobFolders
from bot.jobserver.executor.progress import RecordedProgress
from bot.jobserver.leaks.interface import Masking
from bot.jobserver.models import Changes, CheckResult, CheckStatus, JobDetails
from bot.jobserver.repository.git_repository import GitRepository, StartingPoint
from bot.jobserver.repository.snapshot import Snapshot
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.records import Instruction, ProgressUpdate

logger = logging.getLogger(__name__)
_CONFLICT = "the partial work of the previous request no longer applies: the branch has changed the same lines"


class Checks(Protocol):
    """Finds the faults that a change introduced."""

    async def run(
        self, before: Snapshot, after: Snapshot, changed: Collection[PurePosixPath], copy: Path
    ) -> tuple[CheckResult, ...]:
        """Returns a result for each check that applies. `copy` contains the same files as `after`. Never raises."""
        ...


@dataclass(frozen=True)
class PartialWorkKeeping:
    """Keeps an editor's work when it fails, and restores it for the next instruction.

    Partial work is proposed only as part of a later instruction's change.
    """

    repository: GitRepository
    records: InstructionQueue
    folders: JobFolders
    masking: Masking

    async def put_back(self, instruction: Instruction, start: StartingPoint, copy: Path) -> str:
        """Restores partial work in the copy. Returns a note if it is left out, since the branch changed the same lines.

        Raises:
            GitError: it cannot be read.
        """
        if instruction.partial is None:
            return ""
        is_back = await self.repository.put_back(instruction.partial, start.tree, copy)
        note = "" if is_back else _CONFLICT
        words = note or "the partial work was put back"
        await asyncio.to_thread(append_line, self.folders.log(instruction.job_id), words)
        return note

    async def keep_files(self, instruction: Instruction, start: StartingPoint, copy: Path) -> None:
        """Keeps the contents of the copy, if possible."""
        try:
            collected = await self.repository.collect(start.tree, copy)
            if collected.tree == start.tree:
                await self.records.record_partial(instruction.job_id, None)
                return
            described_as = await described(instruction, self.masking)
            commit = await self.repository.commit(start, collected.tree, commit_message(described_as))
            await self.keep_commit(instruction, start, commit)
        except JobServerError as error:
            logger.warning("job %s: its partial work could not be kept: %s", instruction.job_id, error)

    async def keep_commit(self, instruction: Instruction, start: StartingPoint, commit: str) -> None:
        """Keeps a commit that could not be pushed, and shows it in the job. Raises GitError."""
        files = (await self.repository.changes(start.parents[0], commit)).file_count
        # The row first: a sweep forgets commits in the mirror that no row names.
        await self.records.record_partial(instruction.job_id, commit, files)
        await self.repository.keep_partial(instruction.job_id, commit)


@dataclass(frozen=True)
class EditOutcome:
    """The result of editing. `commit` is not pushed yet; it is None if nothing changed."""

    result: EditResult
    commit: str | None = None
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


@dataclass(frozen=True)
class Editing:
    """Edits in the folders of a job.

    `takes_faults`: whether the editor is asked to fix what the checks found; one that follows fixed patterns cannot.
    """

    repository: GitRepository
    editor: Editor
    checks: Checks
    records: InstructionQueue
    folders: JobFolders
    partial_work: PartialWorkKeeping
    masking: Masking
    spending: Spending
    asking: Asking
    takes_faults: bool = True

    async def edit(self, instruction: Instruction, start: StartingPoint) -> EditOutcome:
        """Runs the editor, and once more if the checks find faults that the change introduced.

        Raises:
            EditError: the editor failed, or no tokens are left for the job or today.
            GitError: the files could not be checked out or collected.
        """
        spent = await self.records.spent_since_asked(instruction)
        try:
            self.spending.check(spent, instruction.words)
            with self.spending.allowed(spent) as allowance:
                return await self._edit(instruction, start, allowance)
        except BudgetUsedUpError as error:
            await self.records.record_budget_end(instruction.job_id, error)
            raise

    async def _edit(self, instruction: Instruction, start: StartingPoint, allowance: Allowance) -> EditOutcome:
        await asyncio.to_thread(self.folders.make_empty, instruction.job_id)
        await self.repository.check_out(start.tree, self._task(instruction).workspace.copy)
        note = await self.partial_work.put_back(instruction, start, self._task(instruction).workspace.copy)
        start = replace(start, note="; ".join(filter(None, (start.note, note))))
        attached = await asyncio.to_thread(self.folders.attach, instruction)
        progress = RecordedProgress(instruction.session, allowance.take, partial(self.asking.ask, instruction))

        async def record(update: ProgressUpdate) -> None:
            await self.records.record_progress(instruction.job_id, masked_update(update, self.masking.known))

        async with progress.recording(record), self._usage_logged(instruction, progress):
            task = replace(self._task(instruction), attachments=attached)
            working = allowance.within(self.editor.edit(task, progress))
            answered = await self._edited(instruction, start, task, working)
            result = await asyncio.to_thread(safe_result, answered, self.masking)
            change = await self._collected(instruction, start, result)
            if self.takes_faults and _failed_checks(change.checks):
                progress.activity("fixing what the checks found")
                change = await self._corrected(instruction, start, change, progress, allowance)
        return replace(change, session=progress.session_id)

    @asynccontextmanager
    async def _usage_logged(self, instruction: Instruction, progress: RecordedProgress) -> AsyncIterator[None]:
        """Writes an instruction's usage of its model to the job's log, however it ends."""
        try:
            yield
        finally:
            if words := progress.total.in_words():
                await asyncio.to_thread(append_line, self.folders.log(instruction.job_id), f"used: {words}")

    async def _edited(
        self, instruction: Instruction, start: StartingPoint, task: EditTask, working: Awaitable[EditResult]
    ) -> EditResult:
        """Waits for the editor; if it fails, keeps its partial work."""
        try:
            return await working
        except EditError:
            await self.partial_work.keep_files(instruction, start, task.workspace.copy)
            raise

    async def _corrected(
        self,
        instruction: Instruction,
        start: StartingPoint,
        change: EditOutcome,
        progress: RecordedProgress,
        allowance: Allowance,
    ) -> EditOutcome:
        """Has the editor fix the faults, once; if it fails, the change stays as it was."""
        task = self._task(instruction)
        again = replace(
            task,
            prompt=task_from_checks(_failed_checks(change.checks)),
            words=None,
            conversation=(*task.conversation, Exchange(task.prompt, change.result.summary)),
            session=progress.session_id,
            is_from_person=False,
        )
        try:
            await allowance.within(self.editor.edit(again, progress))
        except EditError as error:
            words = self.masking.known(f"what the checks found could not be fixed: {error}")
            await asyncio.to_thread(append_line, task.log, words)
            return change
        corrected = await self._collected(instruction, start, change.result)
        return replace(corrected, left_out=tuple(dict.fromkeys((*change.left_out, *corrected.left_out))))

    async def _collected(self, instruction: Instruction, start: StartingPoint, result: EditResult) -> EditOutcome:
        copy = self._task(instruction).workspace.copy
        collected = await self.repository.collect(start.tree, copy)
        notes = (*filter(None, (start.note,)), *collected.notes, *result.notes)
        if collected.tree == start.tree:
            return EditOutcome(result, left_out=collected.left_out, notes=notes)
        described_as = await described(instruction, self.masking)
        commit = await self.repository.commit(start, collected.tree, commit_message(described_as))
        after = self.repository.snapshot(commit)
        changes = await asyncio.to_thread(with_titles, await self.repository.changes(start.base, commit), after)
        paths = [PurePosixPath(file.path) for file in changes.files]
        found = await self.checks.run(self.repository.snapshot(start.base), after, paths, copy)
        checks = masked_checks(found, self.masking.known)
        return EditOutcome(result, commit, changes, collected.left_out, checks, notes)

    def _task(self, instruction: Instruction) -> EditTask:
        return EditTask(
            instruction.prompt,
            self.folders.workspace(instruction.job_id),
            self.folders.log(instruction.job_id),
            tuple(Exchange(earlier.prompt, earlier.answer) for earlier in instruction.conversation),
            instruction.session,
            words=instruction.words,
        )


def _failed_checks(checks: Sequence[CheckResult]) -> list[CheckResult]:
    return [check for check in checks if check.status is CheckStatus.FAILED and check.problems]
