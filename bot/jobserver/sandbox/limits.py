"""Runs a program with limits of memory, processes and disk, and says which one it exceeded."""

import asyncio
import contextlib
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

from pydantic import ByteSize

from bot.jobserver import subprocesses
from bot.jobserver.errors import EditError
from bot.jobserver.sandbox.interface import Workspace
from bot.jobserver.sandbox.supervise import descendants
from bot.jobserver.settings.sandbox import SandboxSettings

_PAUSE_S = 0.25
_DISK_EVERY = 8
_THREADS = 8
"""Threads per process; the kernel counts them together."""
_ENTRY_BYTES = 4096
"""Added per file: many empty files also fill a disk, and slow down everything that scans them."""
_BLOCK = 512  # the unit of st_blocks, whatever the file system's block size


@dataclass(frozen=True)
class RunLimits:
    """`memory` and `disk` are in bytes; `disk` is what a run may add to its workspace."""

    memory: int
    processes: int
    disk: int

    @classmethod
    def for_settings(cls, settings: SandboxSettings) -> "RunLimits":
        return cls(settings.memory_limit, settings.process_limit, settings.disk_limit)

    @property
    def tasks(self) -> int:
        """The maximum number of processes and threads together."""
        return self.processes * _THREADS

    async def run(
        self,
        name: str,
        command: subprocesses.Command,
        workspace: Workspace,
        *,
        stdout: subprocesses.Write,
        stderr: subprocesses.Write | None = None,
    ) -> int:
        """Runs a supervised program and returns its exit code; for the output, see `subprocesses.run`.

        Raises:
            EditError: it cannot be started, took too long, or exceeded a limit; `name` is what it is called then.
        """
        watch = partial(self.watch, name, workspace)
        try:
            return await subprocesses.run(command, stdout=stdout, stderr=stderr, watch=watch)
        except OSError as error:
            raise EditError(f"{name} cannot be started: {error.strerror or 'unknown reason'}") from error
        except subprocesses.ProcessTimeoutError:
            raise EditError(f"{name} took longer than {command.time_limit:g} s") from None

    async def watch(self, name: str, workspace: Workspace, pid: int) -> NoReturn:
        """Waits until a process and its descendants exceed a limit.

        It checks processes and their memory four times a second, and the disk every two seconds. Without /proc, it
        checks only the disk.

        Raises:
            EditError: they did; the message says which one, and that they were ended.
        """
        at_start = 0
        with contextlib.suppress(OSError):
            at_start = await asyncio.to_thread(disk_use, workspace)
        rounds = 0
        while True:
            await asyncio.sleep(_PAUSE_S)
            rounds += 1
            reason = await asyncio.to_thread(self._of_processes, pid)
            if not reason and rounds % _DISK_EVERY == 0:
                reason = await asyncio.to_thread(self._of_disk, workspace, at_start)
            if reason:
                raise EditError(f"{name} was ended: {reason}")

    def _of_processes(self, pid: int) -> str:
        try:
            below = descendants(pid)
        except FileNotFoundError:
            return ""
        if len(below) > self.processes:
            return f"it started more than {self.processes} processes"
        if sum(map(resident_bytes, below)) > self.memory:
            return f"it used more than {_size(self.memory)} of memory"
        return ""

    def _of_disk(self, workspace: Workspace, at_start: int) -> str:
        try:
            if disk_use(workspace) - at_start > self.disk:
                return f"it wrote more than {_size(self.disk)} to the disk"
        except OSError:
            return "it created folders that cannot be read"
        return ""


def _size(number: int) -> str:
    return ByteSize(number).human_readable(separator=" ")


def resident_bytes(pid: int) -> int:
    """Returns the resident memory of a process; shared memory counts in each process."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_bytes().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def disk_use(workspace: Workspace) -> int:
    """Returns the disk usage of the workspace in bytes.

    Raises:
        OSError: a folder cannot be read, or is nested too deeply.
    """
    waiting = {workspace.copy, workspace.home}
    total = 0
    while waiting:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.add(Path(entry.path))
                total += _ENTRY_BYTES
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
    return total
