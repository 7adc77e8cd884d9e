"""A copy of the newest base, checked out before a job asks for one; the job takes it, and another one is made."""

import asyncio
import contextlib
import logging
import shutil
import tempfile
from pathlib import Path

from bot.jobserver.errors import GitError
from bot.jobserver.file_owners import hand_over, owner
from bot.jobserver.repository.foreign_files import remove
from bot.jobserver.repository.mirror import BaseBranch, Mirror
from bot.jobserver.repository.working_copy import ChangeLimits, WorkingCopy

logger = logging.getLogger(__name__)
_LOOKS_S = 60.0
"""How often it is looked whether the base has moved, besides after each job."""
_SETTLES_S = 1.0
"""How long a job has the processor to itself: most of what the built-in editor does takes less."""
_COPY = "copy"


class ReadyCopy:
    """At most one, in `directory`, in a folder with its tree's name; folders with other names are being made or taken.

    A job gets the folder itself, by a rename: no file is shared between two jobs. `settles`: how many seconds after
    that the next one is begun.
    """

    def __init__(self, mirror: Mirror, directory: Path, limits: ChangeLimits, *, settles: float = _SETTLES_S) -> None:
        self._mirror = mirror
        self._directory = directory
        self._limits = limits
        self._settles = settles
        self._looks = asyncio.Event()
        self._making = asyncio.Lock()
        self._tree = ""

    def prepare(self) -> None:
        """Removes what an earlier server left: a machine that lost power may have written only a part. Blocks."""
        remove(self._directory)
        self._directory.mkdir(mode=0o700)

    async def check_out(self, tree: str, directory: Path) -> None:
        """Puts a tree's files into an empty directory: the copy that is ready, or else a new one. Raises GitError."""
        if self._tree == tree:
            async with self._making:  # it is ready sooner than a second one beside it
                pass
        if not await asyncio.to_thread(self._take, tree, directory):
            await WorkingCopy(self._mirror, directory, self._limits).check_out(tree)
        self._looks.set()

    async def keep(self, base: BaseBranch) -> None:
        """Keeps a copy of the base ready; never returns. Without a copy, jobs are only slower."""
        has_failed = False
        while True:
            self._looks.clear()
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
                async with asyncio.timeout(_LOOKS_S):
                    await self._looks.wait()
                await asyncio.sleep(self._settles)

    async def _make(self, tree: str) -> None:
        """Checks a tree out into a temporary folder, which gets its name when it is complete."""
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
            # Renamed before it is removed: a job that asks for it meanwhile gets all of it or nothing.
            old = Path(tempfile.mkdtemp(dir=self._directory, prefix="old-"))
            with contextlib.suppress(FileNotFoundError):
                folder.rename(old / _COPY)
            remove(old)

    def _take(self, tree: str, directory: Path) -> bool:
        """Returns whether the copy was ready. Only one caller gets it: a folder is renamed once."""
        user = owner(directory)
        taken = Path(tempfile.mkdtemp(dir=self._directory, prefix="taken-"))
        try:
            (self._directory / tree).rename(taken / tree)
            directory.rmdir()
            (taken / tree / _COPY).rename(directory)
            for beside in (taken / tree).iterdir():
                beside.rename(directory.with_name(beside.name.replace(_COPY, directory.name, 1)))
            WorkingCopy(self._mirror, directory, self._limits).hand_to(user)
        except OSError:
            remove(directory)
            directory.mkdir(mode=0o700)
            hand_over(directory, user)
            return False
        finally:
            shutil.rmtree(taken, ignore_errors=True)
        return True
