"""Executes one instruction: edits, commits, pushes, and opens or updates the pull request."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from bot.jobserver.editors.interface import EditResult
from bot.jobserver.editors.job_log import append_line
from bot.jobserver.errors import GitError, HeldBackError, JobServerError
from bot.jobserver.executor.descriptions import answer_with, why_nothing_changed, with_titles
from bot.jobserver.executor.editing import Editing, EditOutcome
from bot.jobserver.executor.foreign_text import SecretGuard
from bot.jobserver.executor.proposing import pull_request_details
from bot.jobserver.executor.publishing import Publishing
from bot.jobserver.models import JobDetails, PullRequestState
from bot.jobserver.pull_requests.interface import OpenedPullRequest
from bot.jobserver.repository.git_repository import StartingPoint
from bot.jobserver.store.records import Instruction, Outcome

logger = logging.getLogger(__name__)
T = TypeVar("T")
_STARTS = 3
PUBLISHING_GRACE_S = 1.5
"""Time to complete a push that has begun before a stop."""
_FINISHING_S = 10.0


@dataclass(frozen=True)
class InstructionExecutor:
    """Implements `job_runner.Executor`."""

    editing: Editing
    publishing: Publishing
    guard: SecretGuard

    async def execute(self, instruction: Instruction) -> Outcome:
        folders = self.editing.folders
        log = folders.log(instruction.job_id)
        try:
            outcome = await self._execute(instruction)
        except JobServerError as error:
            error.args = (self.editing.masking.known(str(error)),)
            await asyncio.to_thread(append_line, log, f"failed: {error}")
            raise
        finally:
            await asyncio.shield(asyncio.to_thread(folders.clear, instruction.job_id))
        if reason := outcome.failure or outcome.details.reason or _why_not_proposed(outcome):
            await asyncio.to_thread(append_line, log, reason)
        return outcome

    async def finish_pushed(self, instruction: Instruction) -> Outcome:
        try:
            async with asyncio.timeout(_FINISHING_S):
                commit = await self.publishing.pushed_before(instruction)
                return await self._finish(instruction, commit) if commit else Outcome()
        except (JobServerError, TimeoutError) as error:
            logger.warning("job %s: what was pushed could not be finished: %s", instruction.job_id, error)
            return Outcome()

    async def _execute(self, instruction: Instruction) -> Outcome:
        if instruction.attempts > 1 and (pushed := await self.publishing.pushed_before(instruction)):
            return await _completed(self._finish(instruction, pushed))
        pull_request = await self.publishing.pull_requests.find(instruction.branch)
        if pull_request and pull_request.state is not PullRequestState.OPEN:
            instruction = await self.publishing.records.use_next_branch(instruction)
        for _ in range(_STARTS):
            start = await self.publishing.repository.start(instruction.branch)
            line = f"instruction {instruction.number} from {start.parents[0]}"
            await asyncio.to_thread(append_line, self.editing.folders.log(instruction.job_id), line)
            change = await self.editing.edit(instruction, start)
            if change.commit is None:
                return await _completed(self._nothing_changed(instruction, start, change, pull_request))
            await self._hold_back(instruction, start, change.commit)
            if outcome := await _completed(self._publish(instruction, start, change)):
                return outcome
            instruction = replace(instruction, session=change.session)
        raise GitError("somebody else keeps changing the same lines on the branch: try again later")

    async def _hold_back(self, instruction: Instruction, start: StartingPoint, commit: str) -> None:
        """Raises HeldBackError for a commit that would expose a secret; the work is kept."""
        try:
            await self.guard.check(start, commit)
        except HeldBackError:
            await self.editing.partial_work.keep_commit(instruction, start, commit)
            raise

    async def _publish(self, instruction: Instruction, start: StartingPoint, change: EditOutcome) -> Outcome | None:
        """Returns None if somebody else's commits on the branch are in the way.

        Raises:
            GitError: the commit could not be pushed; the work is kept.
        """
        await self.publishing.records.record_answer(instruction, change.details)
        try:
            pushed = await self.publishing.push(instruction, change)
        except GitError:
            await self.editing.partial_work.keep_commit(instruction, start, change.commit or "")
            raise
        return await self.publishing.propose(instruction, pushed) if pushed else None

    async def _nothing_changed(
        self,
        instruction: Instruction,
        start: StartingPoint,
        change: EditOutcome,
        pull_request: OpenedPullRequest | None,
    ) -> Outcome:
        proposed = await self.publishing.propose_earlier(instruction, start)
        result, current = change.result, pull_request_details(pull_request) if pull_request else None
        details = JobDetails(
            summary=answer_with(result.summary, (), result.notes),
            reason=why_nothing_changed(result.reason, result.question, change.left_out),
            question=result.question or None,
            question_fields=result.question_fields,
            examples=result.examples,
            pull_request=proposed.details or current,
        )
        return Outcome(pr_link=proposed.link, details=details)

    async def _finish(self, instruction: Instruction, commit: str) -> Outcome:
        repository = self.publishing.repository
        start = await repository.start(instruction.branch)
        changes = await asyncio.to_thread(
            with_titles, await repository.changes(start.base, commit), repository.snapshot(commit)
        )
        result = EditResult(
            instruction.summary, question=instruction.question, question_fields=instruction.question_fields
        )
        return await self.publishing.propose(instruction, EditOutcome(result, commit, changes))


def _why_not_proposed(outcome: Outcome) -> str | None:
    proposed = outcome.details.pull_request
    return f"its pull request: {proposed.reason}" if proposed and proposed.reason else None


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
        with contextlib.suppress(asyncio.CancelledError, JobServerError):
            return await task
        raise
