"""Pushes an instruction's commit, once."""

from dataclasses import replace

from bot.jobserver.errors import GitError, PushRejectedError
from bot.jobserver.pipeline.descriptions import TRAILER, trailer_value
from bot.jobserver.pipeline.edit import Edited
from bot.jobserver.pipeline.partial_work import keep_commit
from bot.jobserver.pipeline.prepare import Prepared
from bot.jobserver.pipeline.tools import Tools
from bot.jobserver.store.records import Instruction

_PUSHES = 3


async def push(tools: Tools, prepared: Prepared, edited: Edited) -> Edited | None:
    """Pushes the commit, merged with what somebody else has pushed in the meantime if that is possible.

    Returns what was pushed; None if somebody else changed the same lines.

    Raises:
        GitError: the repository rejected the push; the work is kept.
    """
    await tools.queue.record_answer(prepared.instruction, edited.details)
    try:
        return await _push(tools, prepared, edited)
    except GitError:
        await keep_commit(tools, prepared, edited.commit)
        raise


async def _push(tools: Tools, prepared: Prepared, edited: Edited) -> Edited | None:
    instruction = prepared.instruction
    for _ in range(_PUSHES):
        try:
            await tools.repository.push(edited.commit, instruction.branch)
        except PushRejectedError:
            if ours := await pushed_before(tools, instruction):
                return replace(edited, commit=ours)
            merged = await _on_top(tools, prepared, edited.commit)
            if merged is None:
                return None
            edited = replace(edited, commit=merged)
        else:
            await tools.queue.record_pushed(instruction, edited.commit)
            return edited
    raise GitError(f"somebody else keeps pushing to the branch {instruction.branch}: send the message again later")


async def pushed_before(tools: Tools, instruction: Instruction) -> str | None:
    """Returns the commit that was pushed for this instruction before a crash, or by a process that survived it."""
    if instruction.commit:
        return instruction.commit
    await tools.repository.start(instruction.branch)
    newest = await tools.repository.newest(instruction.branch)
    if newest and await tools.repository.trailer(newest, TRAILER) == trailer_value(instruction):
        await tools.queue.record_pushed(instruction, newest)
        return newest
    return None


async def _on_top(tools: Tools, prepared: Prepared, commit: str) -> str | None:
    """Returns the change as a commit on top of the branch; None if it does not merge cleanly."""
    start = await tools.repository.start(prepared.instruction.branch)
    theirs = await tools.repository.commit(start, start.tree, "The branch as it is now\n")
    tree = await tools.repository.merge(theirs, commit)
    return tree and await tools.repository.commit(start, tree, prepared.message)
