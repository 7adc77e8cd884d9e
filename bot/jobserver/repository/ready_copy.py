"""Keeps a copy of the newest base checked out for the next job."""

import asyncio
import contextlib
import logging
import shutil
import tempfile
from pathlib import Path

from bot.jobserver.errors import GitError
from bot.jobserver.repository.foreign_files import remove
from bot.jobserver.repository.mirror import BaseBranch, Mirror
from bot.jobserver.repository.working_copy import ChangeLimits, WorkingCopy

logger = logging.getLogger(__name__)
_CHECK_EVERY_S = 60.0
"""How often the base is checked for changes, in addition to after each job."""
_DELAY_S = 1.0
"""How long a job has the processor to itself; the built-in editor usually takes less."""
_COPY = "copy"


class ReadyCopy:
    """Keeps at most one copy, in a folder of `directory` named after its tree; other folders are being made or taken.

    A job gets the folder itself by a rename, so jobs share no files. `delay`: how many seconds later the next copy is
    started.
    """

    def __init__(self, mirror: Mirror, directory: Path, limits: ChangeLimits, *, delay: float = _DELAY_S) -> None:
        self._mirror = mirror
        self._directory = directory
        self._limits = limits
        self._delay = delay
        self._check_now = asyncio.Event()
        self._making = asyncio.Lock()
        self._tree = ""

    def prepare(self) -> None:
        """Removes what an earlier server left, which may be incomplete after a power loss. Blocks."""
        remove(self._directory)
        self._directory.mkdir(mode=0o700)

    async def check_out(self, tree: str, directory: Path) -> None:
        """Puts a tree's files into an empty directory, from the ready copy if possible. Raises GitError."""
        if self._tree == tree:
            async with self._making:  # waiting for it is faster than another checkout
                pass
        if not await asyncio.to_thread(self._take, tree, directory):
            await WorkingCopy(self._mirror, directory, self._limits).check_out(tree)
        self._check_now.set()

    async def keep(self, base: BaseBranch) -> None:
        """Keeps a copy of the base ready; never returns. Failures only make jobs slower."""
        has_failed = False
        while True:
            self._check_now.clear()
            try:
                self._tree = await self._mirror.tree_of(f"refs/heads/{base.name}")
                async with self._making:
                    await self._make(self._tree)
                has_failed = False
            except (GitError, OSError) as error:
                if not has_failed:
                    logger.warning("no copy of the repository can be kept ready: %s", error)
                has_failed = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_EVERY_S):
                    await self._check_now.wait()
                await asyncio.sleep(self._delay)

    async def _make(self, tree: str) -> None:
        """Checks out a tree into a temporary folder, which is renamed when it is complete."""
        if (self._directory / tree).exists():
            return
        making = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._directory, prefix="making-"))
        try:
            (making / _COPY).mkdir(mode=0o700)
            await WorkingCopy(self._mirror, making / _COPY, self._limits).check_out(tree)
            await asyncio.to_thread(self._replace_with, making, tree)
        finally:
            await asyncio.to_thread(remove, making)

    def _replace_with(self, made: Path, tree: str) -> None:
        others = [folder for folder in self._directory.iterdir() if "-" not in folder.name]
        made.rename(self._directory / tree)
        for folder in others:
            # Renamed before it is removed, so that a job gets all of it or nothing.
            old = Path(tempfile.mkdtemp(dir=self._directory, prefix="old-"))
            with contextlib.suppress(FileNotFoundError):
                folder.rename(old / _COPY)
            remove(old)

    def _take(self, tree: str, directory: Path) -> bool:
        """Returns whether the copy was ready. Only one caller gets it, since a folder can be renamed only once."""
        taken = Path(tempfile.mkdtemp(dir=self._directory, prefix="taken-"))
        try:
            (self._directory / tree).rename(taken / tree)
            directory.rmdir()
            (taken / tree / _COPY).rename(directory)
            for beside in (taken / tree).iterdir():
                beside.rename(directory.with_name(beside.name.replace(_COPY, directory.name, 1)))
        except OSError:
            remove(directory)
            directory.mkdir(mode=0o700)
            return False
        finally:
            shutil.rmtree(taken, ignore_errors=True)
        return True
