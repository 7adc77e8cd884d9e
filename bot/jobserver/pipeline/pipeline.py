"""An instruction's way, from top to bottom: prepare, edit, scan, push, propose. Each step is a module of that name."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from bot.jobserver.editors.interface import EditResult
from bot.jobserver.editors.job_log import append_line
from bot.jobserver.errors import GitError, JobServerError
from bot.jobserver.pipeline.descriptions import with_titles
from bot.jobserver.pipeline.edit import Edited, edit
from bot.jobserver.pipeline.prepare import Prepared, prepare
from bot.jobserver.pipeline.propose import propose, propose_earlier
from bot.jobserver.pipeline.push import push, pushed_before
from bot.jobserver.pipeline.scan import scan
from bot.jobserver.pipeline.tools import Tools
from bot.jobserver.store.records import Instruction, Outcome

logger = logging.getLogger(__name__)
T = TypeVar("T")
_STARTS = 3
PUBLISHING_GRACE_S = 1.5
"""Time to complete a push that has begun before a stop."""
_FINISHING_S = 10.0


@dataclass(frozen=True)
class Pipeline:
    """Executes instructions; implements `job_runner.Executor`."""

    tools: Tools

    async def execute(self, instruction: Instruction) -> Outcome:
        folders = self.tools.folders
        log = folders.log(instruction.job_id)
        try:
            outcome = await _execute(self.tools, instruction)
        except JobServerError as error:
            error.args = (self.tools.masking.known(str(error)),)
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
                commit = await pushed_before(self.tools, instruction)
                return await _finish(self.tools, instruction, commit) if commit else Outcome()
        except (JobServerError, TimeoutError) as error:
            logger.warning("job %s: what was pushed could not be finished: %s", instruction.job_id, error)
            return Outcome()


async def _execute(tools: Tools, instruction: Instruction) -> Outcome:
    if instruction.attempts > 1 and (commit := await pushed_before(tools, instruction)):
        return await _completed(_finish(tools, instruction, commit))
    for _ in range(_STARTS):
        prepared = await prepare(tools, instruction)
        edited = await edit(tools, prepared)
        if not edited.commit:
            return await _completed(propose_earlier(tools, prepared, edited))
        await scan(tools, prepared, edited.commit)
        if outcome := await _completed(_publish(tools, prepared, edited)):
            return outcome
        instruction = replace(prepared.instruction, session=edited.session)
    raise GitError("somebody else keeps changing the same lines on the branch: try again later")


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
        with contextlib.suppress(asyncio.CancelledError, JobServerError):
            return await task
        raise


def _why_not_proposed(outcome: Outcome) -> str | None:
    proposed = outcome.details.pull_request
    return f"its pull request: {proposed.reason}" if proposed and proposed.reason else None
