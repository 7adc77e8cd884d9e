"""An instruction's way, from top to bottom: prepare, edit, scan, push, propose. One that only plans or asks ends after
the second.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from bot.errors import StoreError
from bot.jobapi.models import CheckResult, CheckStatus, Mode, Proposal, ProposalState, PullRequestState
from bot.jobserver import errors
from bot.jobserver.editors.interface import EditResult, EditTask, with_plan
from bot.jobserver.editors.job_log import append_line
from bot.jobserver.leaks.scan import Suspicion
from bot.jobserver.pipeline.budget import Allowance
from bot.jobserver.pipeline.descriptions import (
    TRAILER,
    commit_message,
    described,
    masked_checks,
    safe_result,
    safe_update,
    task_from_checks,
    trailer_value,
    with_titles,
)
from bot.jobserver.pipeline.progress import RecordedProgress
from bot.jobserver.pipeline.propose import propose, propose_earlier
from bot.jobserver.pipeline.tools import Edited, Prepared, Tools
from bot.jobserver.repository.git_repository import StartingPoint
from bot.jobserver.settings import PREFIX
from bot.jobserver.store.files import pieces_of
from bot.jobserver.store.records import EarlierInstruction, Instruction, Outcome, ProgressUpdate
from bot.jobserver.usage import Spent

logger = logging.getLogger(__name__)
T = TypeVar("T")
_STARTS = 3
PUBLISHING_GRACE_S = 1.5
"""Time to complete a push that has begun before a stop."""
_FINISHING_S = 10.0
_HANDING_OVER_S = 1.0
"""Time to store the home for other machines after a stop."""
_KEEPING_S = 3.0
_CONFLICT = "the partial work of the previous request no longer applies: the branch has changed the same lines"
_ELSEWHERE = "the partial work of the previous request is on another machine, which could not hand it over"
_SETTING = f"{PREFIX}ALLOWED_SECRETS"
_MOST_NAMED = 3
_PUSHES = 3


@dataclass(frozen=True)
class Pipeline:
    """Executes instructions; implements `job_runner.Executor`."""

    tools: Tools

    async def execute(self, instruction: Instruction) -> Outcome:
        patience: float | None = None
        try:
            return await self._logged(instruction)
        except asyncio.CancelledError:
            patience = _HANDING_OVER_S
            raise
        finally:
            await _completed(self._put_away(instruction, patience))

    async def _logged(self, instruction: Instruction) -> Outcome:
        log = self.tools.folders.log(instruction.job_id)
        try:
            outcome = await _execute(self.tools, instruction)
        except errors.JobServerError as error:
            error.args = (self.tools.masking.known(str(error)),)
            await asyncio.to_thread(append_line, log, f"failed: {error}")
            raise
        proposed = outcome.details.pull_request
        why_not = f"its pull request: {proposed.reason}" if proposed and proposed.reason else None
        if reason := outcome.failure or outcome.details.reason or why_not:
            await asyncio.to_thread(append_line, log, reason)
        return outcome

    async def _put_away(self, instruction: Instruction, patience: float | None) -> None:
        """Clears the job's folder, and stores the log, and the home for other machines, within so many seconds."""
        await asyncio.to_thread(self.tools.folders.clear, instruction.job_id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await _store_log(self.tools, instruction)
                if self.tools.handover is not None:
                    await self.tools.handover.keep_home(instruction)

    async def finish_pushed(self, instruction: Instruction) -> Outcome:
        try:
            async with asyncio.timeout(_FINISHING_S):
                commit = await pushed_before(self.tools, instruction)
                return await _finish(self.tools, instruction, commit) if commit else Outcome()
        except (errors.JobServerError, TimeoutError) as error:
            logger.warning("job %s: what was pushed could not be finished: %s", instruction.job_id, error)
            return Outcome()


async def _store_log(tools: Tools, instruction: Instruction) -> None:
    """Moves what was logged from the disk into the database; what cannot be stored waits for the next instruction."""
    log = tools.folders.log(instruction.job_id)
    try:
        await tools.queue.record_log(instruction, await tools.files.write(pieces_of(log)))
        await asyncio.to_thread(log.unlink)
    except FileNotFoundError:
        return
    except (errors.JobServerError, OSError, StoreError) as error:
        logger.warning("job %s: its log is on this machine only: %s", instruction.job_id, error)


async def _execute(tools: Tools, instruction: Instruction) -> Outcome:
    if instruction.was_begun and (commit := await pushed_before(tools, instruction)):
        return await _completed(_finish(tools, instruction, commit))
    for _ in range(_STARTS):
        prepared = await prepare(tools, instruction)
        if instruction.was_begun:
            # Once more: what a dead worker was pushing may have arrived before the branch was fetched to start from.
            if commit := await pushed_before(tools, prepared.instruction):
                return await _completed(_finish(tools, prepared.instruction, commit))
            await tools.queue.free_replies(prepared.instruction)
        edited = await edit(tools, prepared)
        if instruction.mode is not Mode.EDIT:
            return consulted(prepared, edited)
        if not edited.commit:
            return await _completed(propose_earlier(tools, prepared, edited))
        await scan(tools, prepared, edited.commit)
        if outcome := await _completed(_publish(tools, prepared, edited)):
            return outcome
        instruction = replace(prepared.instruction, session=edited.session)
    raise errors.GitError("somebody else keeps changing the same lines on the branch: try again later")


async def _publish(tools: Tools, prepared: Prepared, edited: Edited) -> Outcome | None:
    """Returns None if somebody else's commits on the branch are in the way."""
    pushed = await push(tools, prepared, edited)
    return await propose(tools, prepared.instruction, pushed) if pushed else None


async def _finish(tools: Tools, instruction: Instruction, commit: str) -> Outcome:
    """Proposes what was pushed before an interruption."""
    repository = tools.repository
    start = await repository.start(instruction.branch)
    changes = await asyncio.to_thread(
        with_titles, await repository.changes(start.base, commit), repository.snapshot(commit)
    )
    said = EditResult(instruction.summary, question=instruction.question, question_fields=instruction.question_fields)
    return await propose(tools, instruction, Edited(said, commit, changes))


async def _completed(publishing: Coroutine[Any, Any, T]) -> T:
    """Lets the publishing finish when cancelled, unless it takes too long, so that no push is left half done."""
    task = asyncio.create_task(publishing, name="publishing a change")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            await asyncio.wait({task}, timeout=PUBLISHING_GRACE_S)
        finally:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, errors.JobServerError):
            return await task
        raise


async def prepare(tools: Tools, instruction: Instruction) -> Prepared:
    """Fetches the branch, and lays out its files with the partial work of an earlier instruction that failed.

    A branch whose pull request has ended is not continued: the job gets another one.

    Raises:
        JobServerError: the repository or the host of pull requests is out of reach, or the files cannot be written.
    """
    pull_request = await tools.pull_requests.find(instruction.branch)
    if pull_request and pull_request.state is not PullRequestState.OPEN:
        instruction = await tools.queue.use_next_branch(instruction)
    start = await tools.repository.start(instruction.branch)
    workspace, log = tools.folders.workspace(instruction.job_id), tools.folders.log(instruction.job_id)
    workspace = replace(workspace, read_only=instruction.mode is not Mode.EDIT)
    await asyncio.to_thread(append_line, log, f"instruction {instruction.number} from {start.parents[0]}")
    await asyncio.to_thread(tools.folders.make_empty, instruction.job_id)
    await tools.repository.working_copy(workspace.copy).check_out(start.tree)
    if tools.handover is not None and not await tools.handover.bring_home(instruction):
        instruction = replace(instruction, session=None)
    if instruction.partial is not None:
        problem = await _put_back(tools, instruction, instruction.partial, start)
        await asyncio.to_thread(append_line, log, problem or "the partial work was put back")
        start = replace(start, note="; ".join(filter(None, (start.note, problem))))
    plan, prompt = instruction.plan, instruction.prompt
    task = EditTask(
        with_plan(prompt, plan.text, has_moved=plan.tree != start.tree) if plan else prompt,
        workspace,
        log,
        instruction.conversation,
        instruction.session,
        attachments=await tools.folders.attach(instruction, tools.files),
        words=instruction.words,
        mode=instruction.mode,
        model=instruction.model,
        effort=instruction.effort,
        is_accepted=plan is not None,
    )
    message = commit_message(await described(instruction, tools.masking))
    return Prepared(instruction, start, task, message, pull_request)


async def _put_back(tools: Tools, instruction: Instruction, partial: str, start: StartingPoint) -> str:
    """Returns why an earlier instruction's work could not be put into the copy; empty if it was."""
    repository = tools.repository
    is_here = await repository.has_partial(partial)
    if not is_here and tools.handover is not None:
        await tools.handover.bring_partial(instruction, partial)
        is_here = await repository.has_partial(partial)
    if not is_here:
        return _ELSEWHERE
    copy = tools.folders.workspace(instruction.job_id).copy
    return "" if await repository.put_back(partial, start.tree, copy) else _CONFLICT


async def edit(tools: Tools, prepared: Prepared) -> Edited:
    """Runs the editor within the budget, and once more if the checks find faults that the change introduced.

    Raises:
        EditError: the editor failed, or no tokens are left for the job or today. Its work is kept.
        GitError: the files could not be collected.
    """
    instruction = prepared.instruction
    spent = await tools.queue.spent_since_asked(instruction)
    tools.spending.know(*await tools.queue.tokens_today(instruction.project_id))
    try:
        tools.spending.check(spent, instruction.words)
        with tools.spending.allowed(spent) as allowance:
            return await _edit(tools, prepared, allowance)
    except errors.BudgetUsedUpError as error:
        await tools.queue.record_budget_end(instruction, error)
        raise


async def _edit(tools: Tools, prepared: Prepared, allowance: Allowance) -> Edited:
    instruction = prepared.instruction
    progress = RecordedProgress(instruction.session, allowance.take, partial(tools.asking.ask, instruction))

    async def record(update: ProgressUpdate) -> None:
        await tools.queue.record_progress(instruction, safe_update(update, tools.masking.known))
        if update.spent != Spent():
            tools.spending.know(*await tools.queue.tokens_today(instruction.project_id))

    async with progress.recording(record):
        try:
            answered = await allowance.within(tools.editor.edit(prepared.task, progress))
            edited = await _collected(tools, prepared, await asyncio.to_thread(safe_result, answered, tools.masking))
            if tools.takes_faults and _failed(edited.checks):
                progress.activity("fixing what the checks found")
                edited = await _corrected(tools, prepared, edited, progress, allowance)
        except errors.EditError:
            await keep_files(tools, prepared)
            raise
        except asyncio.CancelledError:
            await _keep_for_the_next(tools, prepared)
            raise
        finally:
            if words := progress.total.in_words():
                await asyncio.to_thread(append_line, prepared.task.log, f"used: {words}")
    return replace(edited, session=progress.session_id)


async def _collected(tools: Tools, prepared: Prepared, result: EditResult) -> Edited:
    """Commits what the editor left in the copy; in a mode that may change nothing, it is not even looked at."""
    if prepared.task.mode is not Mode.EDIT:
        return Edited(result)
    repository, start, copy = tools.repository, prepared.start, prepared.task.workspace.copy
    collected = await repository.working_copy(copy).collect(start.tree)
    notes = (*filter(None, (start.note,)), *result.notes)
    if collected.tree == start.tree:
        return Edited(result, left_out=collected.left_out, notes=notes)
    commit = await repository.commit(start, collected.tree, prepared.message)
    after = repository.snapshot(commit)
    changes = await asyncio.to_thread(with_titles, await repository.changes(start.base, commit), after)
    paths = [PurePosixPath(file.path) for file in changes.files]
    found = await tools.check(repository.snapshot(start.base), after, paths, copy)
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
        conversation=(*task.conversation, EarlierInstruction(task.prompt, edited.result.summary, task.own_words)),
        session=progress.session_id,
        attachments=(),
    )
    try:
        await allowance.within(tools.editor.edit(again, progress))
    except errors.EditError as error:
        words = tools.masking.known(f"what the checks found could not be fixed: {error}")
        await asyncio.to_thread(append_line, task.log, words)
        return edited
    corrected = await _collected(tools, prepared, edited.result)
    return replace(corrected, left_out=tuple(dict.fromkeys((*edited.left_out, *corrected.left_out))))


def _failed(checks: Sequence[CheckResult]) -> list[CheckResult]:
    return [check for check in checks if check.status is CheckStatus.FAILED and check.problems]


def consulted(prepared: Prepared, edited: Edited) -> Outcome:
    """Returns the outcome of an instruction that may change nothing: a plan, an answer, or a question."""
    result, plan = edited.result, None
    if result.proposal:
        new = {"id": secrets.token_hex(8), "state": ProposalState.PROPOSED}
        plan = Proposal(**new, text=result.proposal, pages=result.proposed_pages)
    more = {"reason": result.reason or None, "examples": result.examples, "pages_read": result.pages_read}
    details = edited.details.model_copy(update={**more, "proposal": plan})
    return Outcome(details=details, tree=prepared.start.tree)


async def scan(tools: Tools, prepared: Prepared, commit: str) -> None:
    """Raises JobServerError for a commit that adds a secret, or cannot be searched for any; the work is kept."""
    try:
        leaks = await tools.find_leaks(prepared.start, commit)
    except errors.LeakScanError as error:
        reason = (
            f"Nothing was pushed, since the change could not be searched for keys: the search {error}. "
            f"Ask for less at once, or have the files added to {_SETTING}"
        )
    else:
        if not leaks:
            return
        reason = in_words(leaks)
    await keep_commit(tools, prepared, commit)
    raise errors.JobServerError(reason)


def in_words(leaks: Sequence[Suspicion]) -> str:
    """Says which files contain what, and what to do; values of the server itself cannot be allowed."""
    more = len(leaks) - _MOST_NAMED
    named = [_named(leak) for leak in leaks[:_MOST_NAMED]]
    found = ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])
    allowable = [f"'{leak.path}:{leak.rule}'" for leak in leaks[:_MOST_NAMED] if leak.rule]
    allow = f", or, if it is none, have {' '.join(allowable)} added to {_SETTING}" if allowable else ""
    return f"Nothing was pushed, since the change contains {found}. Reply to have it removed{allow}"


def _named(leak: Suspicion) -> str:
    if not leak.rule:
        return f"a key of this job server, in `{leak.path}`"
    return f"what looks like a secret ({leak.kind}, rule {leak.rule}) in `{leak.path}`"


async def push(tools: Tools, prepared: Prepared, edited: Edited) -> Edited | None:
    """Pushes the commit, merged with what somebody else has pushed in the meantime if that is possible.

    Returns what was pushed; None if somebody else changed the same lines.

    Raises:
        GitError: the repository rejected the push; the work is kept.
    """
    await tools.queue.record_answer(prepared.instruction, edited.details)
    try:
        return await _push(tools, prepared, edited)
    except errors.GitError:
        await keep_commit(tools, prepared, edited.commit)
        raise


async def _push(tools: Tools, prepared: Prepared, edited: Edited) -> Edited | None:
    instruction, start = prepared.instruction, prepared.start
    for _ in range(_PUSHES):
        await tools.queue.renew(instruction)
        try:
            await tools.repository.push(edited.commit, instruction.branch, start.tip)
        except errors.PushRejectedError:
            start = await tools.repository.start(instruction.branch)
            tree = await tools.repository.applied(edited.commit, start.tree)
            # Looked for last: what arrives even later is in the way of the next push.
            if ours := await pushed_before(tools, instruction):
                return replace(edited, commit=ours)
            if tree is None:
                return None
            edited = replace(edited, commit=await tools.repository.commit(start, tree, prepared.message))
        else:
            await tools.queue.record_pushed(instruction, edited.commit)
            return edited
    raise errors.GitError(
        f"somebody else keeps pushing to the branch {instruction.branch}: send the message again later"
    )


async def pushed_before(tools: Tools, instruction: Instruction) -> str | None:
    """Returns the commit that was pushed for this instruction before a crash, or by a process that survived it."""
    if instruction.commit:
        return instruction.commit
    await tools.repository.start(instruction.branch)
    commit = await tools.repository.with_trailer(instruction.branch, TRAILER, trailer_value(instruction))
    if commit is not None:
        await tools.queue.record_pushed(instruction, commit)
    return commit


async def keep_files(tools: Tools, prepared: Prepared) -> None:
    """Keeps what an editor that failed left in the copy, if it was to change it, and if that is possible."""
    if prepared.task.mode is not Mode.EDIT:
        return
    job_id, start = prepared.instruction.job_id, prepared.start
    try:
        collected = await tools.repository.working_copy(prepared.task.workspace.copy).collect(start.tree)
        if collected.tree == start.tree:
            await tools.queue.record_partial(prepared.instruction, None)
        else:
            await keep_commit(tools, prepared, await tools.repository.commit(start, collected.tree, prepared.message))
    except errors.JobServerError as error:
        logger.warning("job %s: its partial work could not be kept: %s", job_id, error)


async def _keep_for_the_next(tools: Tools, prepared: Prepared) -> None:
    """Keeps what was done before this worker had to end, in a short time. What somebody stopped is not kept."""
    with contextlib.suppress(StoreError, errors.LeaseLostError, TimeoutError):
        async with asyncio.timeout(_KEEPING_S):
            if not await tools.queue.is_stopped(prepared.instruction):
                await keep_files(tools, prepared)


async def keep_commit(tools: Tools, prepared: Prepared, commit: str) -> None:
    """Keeps a commit that was not pushed, and shows it in the job. Raises GitError."""
    job_id = prepared.instruction.job_id
    files = (await tools.repository.changes(prepared.start.parents[0], commit)).file_count
    # The row first: a sweep forgets commits in the mirror that no row names.
    await tools.queue.record_partial(prepared.instruction, commit, files)
    await tools.repository.keep_partial(job_id, commit)
    if tools.handover is not None:
        await tools.handover.keep_partial(prepared.instruction, prepared.start)
