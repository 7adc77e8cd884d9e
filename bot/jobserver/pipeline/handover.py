"""What another machine needs to continue a job, encrypted in the database: the HOME of its programs, with an agent's
session, and work that was not pushed.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.errors import StoreError
from bot.jobserver.errors import JobServerError
from bot.jobserver.pipeline.home_archive import pack, unpack
from bot.jobserver.pipeline.job_folders import JobFolders
from bot.jobserver.repository.foreign_files import remove
from bot.jobserver.repository.git_repository import GitRepository, StartingPoint
from bot.jobserver.sealing import OVERHEAD_BYTES, Sealing
from bot.jobserver.store.files import CHUNK_BYTES, FileStore, new_file_id, pieces_of, write_to
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.records import Instruction

logger = logging.getLogger(__name__)
_LARGEST_BUNDLE = 50_000_000
_NOT_BROUGHT = (JobServerError, OSError)
_NOT_KEPT = (*_NOT_BROUGHT, StoreError)
_PIECE = CHUNK_BYTES - OVERHEAD_BYTES


@dataclass(frozen=True)
class Handover:
    """What is too large, or cannot be stored, is on this machine only, and the log says why.

    `left_out` returns the files of a home that no other machine gets.
    """

    queue: InstructionQueue
    files: FileStore
    folders: JobFolders
    repository: GitRepository
    sealing: Sealing
    left_out: Callable[[], Collection[PurePosixPath]] = frozenset

    async def keep_home(self, instruction: Instruction) -> None:
        """Stores the home that an instruction left. From the first step on, no machine continues an earlier one."""
        job_id, file_id = instruction.job_id, new_file_id()
        home = self.folders.workspace(job_id).home
        version = await asyncio.to_thread(self.folders.home_version, job_id)
        has_run = version == _in_use(instruction) and await asyncio.to_thread(home.is_dir)
        if not has_run and not instruction.was_begun:
            return
        async with self._scratch(job_id, "its session is on this machine only", _NOT_KEPT) as packed:
            await self.queue.record_home(instruction, file_id)
            if not has_run:
                return  # a machine that is gone has its home
            await asyncio.to_thread(self.folders.set_home_version, job_id, file_id)
            await asyncio.to_thread(lambda: pack(home, packed, self.left_out()))
            await self._store(packed, job_id, file_id)
            await self.queue.keep_home(instruction, file_id)

    async def bring_home(self, instruction: Instruction) -> bool:
        """Makes the job's home what its newest instruction left; returns False if that is gone, and the home empty."""
        job_id, file_id = instruction.job_id, instruction.home
        version = await asyncio.to_thread(self.folders.home_version, job_id) or ""
        is_had = file_id is None or file_id == version.partition(" ")[0] or await self._unpacked(job_id, file_id)
        await asyncio.to_thread(self.folders.set_home_version, job_id, _in_use(instruction))
        return is_had

    async def _unpacked(self, job_id: str, file_id: str) -> bool:
        is_had = False
        await asyncio.to_thread(self.folders.empty_home, job_id)
        async with self._scratch(
            job_id, "the session that another machine left cannot be used", _NOT_BROUGHT
        ) as packed:
            await self._fetch(packed, job_id, file_id)
            await asyncio.to_thread(unpack, packed, self.folders.workspace(job_id).home)
            is_had = True
        if not is_had:
            await asyncio.to_thread(self.folders.empty_home, job_id)
        return is_had

    async def keep_partial(self, instruction: Instruction, start: StartingPoint) -> None:
        """Stores the commit that the mirror keeps."""
        job_id, file_id = instruction.job_id, new_file_id()
        async with self._scratch(job_id, "its partial work is on this machine only", _NOT_KEPT) as bundle:
            await self.repository.bundle(job_id, start.base, bundle, _LARGEST_BUNDLE)
            await self._store(bundle, job_id, file_id)
            await self.queue.keep_partial(instruction, file_id)

    async def bring_partial(self, instruction: Instruction, commit: str) -> None:
        """Gets the commit of an earlier instruction into the mirror, if possible."""
        job_id = instruction.job_id
        async with self._scratch(job_id, "the partial work of another machine cannot be used", _NOT_BROUGHT) as bundle:
            await self._fetch(bundle, job_id, instruction.partial_file or "")
            await self.repository.unbundle(job_id, commit, bundle)

    async def _store(self, path: Path, job_id: str, file_id: str) -> None:
        await self.files.write(self.sealing.seal(pieces_of(path, _PIECE), f"{job_id} {file_id}"), file_id)

    async def _fetch(self, path: Path, job_id: str, file_id: str) -> None:
        await write_to(path, self.sealing.open(self.files.read(file_id), f"{job_id} {file_id}"))

    @contextlib.asynccontextmanager
    async def _scratch(self, job_id: str, otherwise: str, faults: tuple[type[Exception], ...]) -> AsyncIterator[Path]:
        """Provides a path for a file. What fails within, by these faults, is told in the log, and is not raised."""
        path = self.folders.workspace(job_id).home.with_name("packed")
        try:
            yield path
        except faults as error:
            logger.warning("job %s: %s: %s", job_id, otherwise, error)
        finally:
            await asyncio.to_thread(remove, path)


def _in_use(instruction: Instruction) -> str:
    """Returns the version of a home with which, or with what grew from it, an instruction has run."""
    return f"{instruction.home} {instruction.number}"
