"""Runs the editor on a job's copy, collects its change, and checks and commits that."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from bot.jobapi.models import Changes, CheckResult, CheckStatus, JobDetails
from bot.jobserver.editors.interface import EditResult, Exchange
from bot.jobserver.editors.job_log import append_line
from bot.jobserver.errors import BudgetUsedUpError, EditError
from bot.jobserver.pipeline.budget import Allowance
from bot.jobserver.pipeline.descriptions import answer_with, task_from_checks, with_titles
from bot.jobserver.pipeline.foreign_text import masked_checks, masked_update, safe_result
from bot.jobserver.pipeline.partial_work import keep_files
from bot.jobserver.pipeline.prepare import Prepared
from bot.jobserver.pipeline.progress import RecordedProgress
from bot.jobserver.pipeline.tools import Tools
from bot.jobserver.store.records import ProgressUpdate


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


async def edit(tools: Tools, prepared: Prepared) -> Edited:
    """Runs the editor within the budget, and once more if the checks find faults that the change introduced.

    Raises:
        EditError: the editor failed, or no tokens are left for the job or today. Its work is kept.
        GitError: the files could not be collected.
    """
    instruction = prepared.instruction
    spent = await tools.queue.spent_since_asked(instruction)
    try:
        tools.spending.check(spent, instruction.words)
        with tools.spending.allowed(spent) as allowance:
            return await _edit(tools, prepared, allowance)
    except BudgetUsedUpError as error:
        await tools.queue.record_budget_end(instruction.job_id, error)
        raise


async def _edit(tools: Tools, prepared: Prepared, allowance: Allowance) -> Edited:
    instruction = prepared.instruction
    progress = RecordedProgress(instruction.session, allowance.take, partial(tools.asking.ask, instruction))

    async def record(update: ProgressUpdate) -> None:
        await tools.queue.record_progress(instruction.job_id, masked_update(update, tools.masking.known))

    async with progress.recording(record):
        try:
            answered = await allowance.within(tools.editor.edit(prepared.task, progress))
            edited = await _collected(tools, prepared, await asyncio.to_thread(safe_result, answered, tools.masking))
            if tools.takes_faults and _failed(edited.checks):
                progress.activity("fixing what the checks found")
                edited = await _corrected(tools, prepared, edited, progress, allowance)
        except EditError:
            await keep_files(tools, prepared)
            raise
        finally:
            if words := progress.total.in_words():
                await asyncio.to_thread(append_line, prepared.task.log, f"used: {words}")
    return replace(edited, session=progress.session_id)


async def _collected(tools: Tools, prepared: Prepared, result: EditResult) -> Edited:
    repository, start, copy = tools.repository, prepared.start, prepared.task.workspace.copy
    collected = await repository.collect(start.tree, copy)
    notes = (*filter(None, (start.note,)), *result.notes)
    if collected.tree == start.tree:
        return Edited(result, left_out=collected.left_out, notes=notes)
    commit = await repository.commit(start, collected.tree, prepared.message)
    after = repository.snapshot(commit)
    changes = await asyncio.to_thread(with_titles, await repository.changes(start.base, commit), after)
    paths = [PurePosixPath(file.path) for file in changes.files]
    found = await tools.checks.run(repository.snapshot(start.base), after, paths, copy)
    return Edited(result, commit, changes, collected.left_out, masked_checks(found, tools.masking.known), notes)


async def _corrected(
    tools: Tools,
    prepared: Prepared,
    edited: Edited,
    progress: RecordedProgress,
    allowance: Allowance,
) -> Edited:
    """Has the editor fix the faults, once; if it fails, the change stays as it was."""
    task = prepared.task
    again = replace(
        task,
        prompt=task_from_checks(_failed(edited.checks)),
        words=None,
        conversation=(*task.conversation, Exchange(task.prompt, edited.result.summary)),
        session=progress.session_id,
        is_from_person=False,
        attachments=(),
    )
    try:
        await allowance.within(tools.editor.edit(again, progress))
    except EditError as error:
        words = tools.masking.known(f"what the checks found could not be fixed: {error}")
        await asyncio.to_thread(append_line, task.log, words)
        return edited
    corrected = await _collected(tools, prepared, edited.result)
    return replace(corrected, left_out=tuple(dict.fromkeys((*edited.left_out, *corrected.left_out))))


def _failed(checks: Sequence[CheckResult]) -> list[CheckResult]:
    return [check for check in checks if check.status is CheckStatus.FAILED and check.problems]
