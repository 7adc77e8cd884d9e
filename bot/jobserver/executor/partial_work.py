"""What an editor got done before it failed: kept beside the branch, and put back for the next instruction."""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path

from bot.jobserver.editors.job_log import append_line
from bot.jobserver.errors import JobServerError
from bot.jobserver.executor.descriptions import commit_message
from bot.jobserver.executor.interfaces import JobRepository, Records
from bot.jobserver.executor.job_folders import JobFolders
from bot.jobserver.executor.masked_texts import described
from bot.jobserver.leaks.interface import Masking
from bot.jobserver.repository.interface import StartingPoint
from bot.jobserver.store.records import Instruction

logger = logging.getLogger(__name__)
_DOES_NOT_FIT = "the partial work of the request before does not fit any more: the branch has changed the same lines"


@dataclass(frozen=True)
class PartialWorkKeeping:
    """It is never proposed by itself: only together with what a later instruction makes of it."""

    repository: JobRepository
    records: Records
    folders: JobFolders
    masking: Masking

    async def put_back(self, instruction: Instruction, start: StartingPoint, copy: Path) -> str:
        """Puts it into the copy. Returns a note where the branch has changed the same lines, so that it is left out.

        Raises:
            GitError: it cannot be read.
        """
        if instruction.partial is None:
            return ""
        is_back = await self.repository.put_back(instruction.partial, start.tree, copy)
        note = "" if is_back else _DOES_NOT_FIT
        words = note or "the partial work was put back"
        await asyncio.to_thread(append_line, self.folders.log(instruction.job_id), words)
        return note

    async def keep_files(self, instruction: Instruction, start: StartingPoint, copy: Path) -> None:
        """Keeps what is in the copy, if it can."""
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
        """Keeps a commit that could not be pushed; the job tells of it as long as it is kept. Raises GitError."""
        files = (await self.repository.changes(start.parents[0], commit)).file_count
        # The row first: what keeps the commit in the mirror is forgotten where no row names it.
        await self.records.record_partial(instruction.job_id, commit, files)
        await self.repository.keep_partial(instruction.job_id, commit)
