"""Keeps work that could not be pushed; it is proposed only as part of a later instruction's change."""

import logging

from bot.jobserver.errors import JobServerError
from bot.jobserver.pipeline.prepare import Prepared
from bot.jobserver.pipeline.tools import Tools

logger = logging.getLogger(__name__)


async def keep_files(tools: Tools, prepared: Prepared) -> None:
    """Keeps what an editor that failed left in the copy, if possible."""
    job_id, start = prepared.instruction.job_id, prepared.start
    try:
        collected = await tools.repository.collect(start.tree, prepared.task.workspace.copy)
        if collected.tree == start.tree:
            await tools.queue.record_partial(job_id, None)
        else:
            await keep_commit(tools, prepared, await tools.repository.commit(start, collected.tree, prepared.message))
    except JobServerError as error:
        logger.warning("job %s: its partial work could not be kept: %s", job_id, error)


async def keep_commit(tools: Tools, prepared: Prepared, commit: str) -> None:
    """Keeps a commit that was not pushed, and shows it in the job. Raises GitError."""
    job_id = prepared.instruction.job_id
    files = (await tools.repository.changes(prepared.start.parents[0], commit)).file_count
    # The row first: a sweep forgets commits in the mirror that no row names.
    await tools.queue.record_partial(job_id, commit, files)
    await tools.repository.keep_partial(job_id, commit)
