"""The folders of jobs: the copy to edit, the HOME of its programs, the attachments and the log."""

import asyncio
import contextlib
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from bot.jobserver.editors.interface import TaskFile
from bot.jobserver.errors import JobServerError
from bot.jobserver.repository.foreign_files import remove
from bot.jobserver.sandbox.interface import Workspace
from bot.jobserver.store.files import FileStore, write_to
from bot.jobserver.store.records import Attachment, Instruction

_HOME_VERSION = "home-version"
_LONGEST_NAME = 80
_LONGEST_SUFFIX = 12
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_READ_ONLY = 0o400
_JOB_ID = re.compile(r"[0-9a-f]{16}")
ANY_PROGRAMS = (
    ".cache", ".npm/_cacache", ".npm/_logs", ".npm/_npx", ".bun/install/cache", ".cargo/registry", ".local/share/Trash",
    ".local/share/pnpm/store", ".yarn/berry/cache", "go/pkg",
)  # fmt: skip
"""Caches of common programs, as paths in HOME."""


def safe_names(names: Sequence[str]) -> list[str]:
    """Returns a unique file name for each, even if letter case is ignored."""
    taken = set[str]()
    found = []
    for name in map(safe_name, names):
        number, unique = 1, name
        while unique.lower() in taken:
            number += 1
            path = PurePosixPath(name)
            unique = f"{path.stem}-{number}{path.suffix}"
        taken.add(unique.lower())
        found.append(unique)
    return found


def safe_name(name: str) -> str:
    """Returns the last part of a path as a simple name, neither hidden nor like an option."""
    path = PurePosixPath(name.replace("\\", "/"))
    suffix = _UNSAFE.sub("", path.suffix)[:_LONGEST_SUFFIX]
    stem = _UNSAFE.sub("-", path.name.removesuffix(path.suffix)).strip("-.")[:_LONGEST_NAME]
    return f"{stem or 'file'}{suffix if suffix != '.' else ''}"


def drop_caches(home: Path, caches: Iterable[str] = ()) -> None:
    """Removes these caches and those of common programs. Call it only while no program runs that could change HOME.

    Caches only save time, and would be kept once for each job. Links are removed, but not followed.
    """
    for cache in (*ANY_PROGRAMS, *caches):
        with contextlib.suppress(OSError):
            parents = ((home / folder).lstat().st_mode for folder in Path(cache).parents)
            if all(map(stat.S_ISDIR, parents)):  # real folders
                remove(home / cache)


class JobFolders:
    """`directory` contains `jobs/<id>/` with `copy`, `home` and `attachments`, and `logs/<id>.log`. All methods
    but `attach` block.

    `caches` are folders in HOME that are not kept, in addition to those of common programs.
    """

    def __init__(self, directory: Path, caches: Sequence[str] = ()) -> None:
        self._caches = caches
        self._jobs = directory / "jobs"
        self._logs = directory / "logs"

    def prepare(self) -> None:
        """Creates the folders, and removes copies that a killed server left behind."""
        for folder in (self._jobs, self._logs):
            folder.mkdir(mode=0o700, exist_ok=True)
        for job in self._jobs.iterdir():
            self._remove_all_but_home(job)

    def log(self, job_id: str) -> Path:
        return self._logs / f"{job_id}.log"

    def job_ids(self) -> list[str]:
        """Returns the ids of jobs that have a folder or a log here."""
        found = {path.stem for folder in (self._jobs, self._logs) for path in folder.iterdir()}
        return sorted(filter(_JOB_ID.fullmatch, found))

    def workspace(self, job_id: str) -> Workspace:
        """Returns the folders; copy and home exist after `make_empty`, attachments after `attach`."""
        job = self._jobs / job_id
        return Workspace(job / "copy", job / "home", job / "attachments")

    def make_empty(self, job_id: str) -> None:
        """Creates the job's folders, with an empty copy.

        Raises:
            JobServerError: they cannot be created.
        """
        workspace = self.workspace(job_id)
        self._remove_all_but_home(workspace.copy.parent)
        try:
            for folder in (workspace.copy, workspace.home):
                folder.mkdir(mode=0o700, parents=True, exist_ok=folder == workspace.home)
        except OSError as error:
            raise JobServerError(f"the job's folder cannot be created: {error.strerror}") from error

    async def attach(self, instruction: Instruction, store: FileStore) -> tuple[TaskFile, ...]:
        """Writes the job's attachments to their folder, and returns those of this instruction in order.

        Raises:
            JobServerError: a file is missing, or cannot be written.
        """
        if not instruction.attachments:
            return ()
        folder = self._jobs / instruction.job_id / "attachments"
        # The same file under the same name is written once, even if it was sent twice.
        files = {(file.upload_id, file.name): file for file in instruction.attachments}
        names = dict(zip(files, safe_names([name for _, name in files]), strict=True))
        try:
            await asyncio.to_thread(folder.mkdir, mode=0o700)
            for key, file in files.items():
                await _write_attachment(folder / names[key], file, store)
        except OSError as error:
            raise JobServerError(f"the files that came with this cannot be written: {error.strerror}") from error
        own = [file for file in instruction.attachments if file.instruction == instruction.number]
        copies = (TaskFile(names[file.upload_id, file.name], file.name, file.mimetype, file.size) for file in own)
        return tuple(dict.fromkeys(copies))

    def home_version(self, job_id: str) -> str | None:
        """Returns which home the folder has; None before the first was named."""
        file = self._jobs / job_id / _HOME_VERSION
        return file.read_text() if file.exists() else None

    def set_home_version(self, job_id: str, version: str) -> None:
        (self._jobs / job_id / _HOME_VERSION).write_text(version)

    def empty_home(self, job_id: str) -> None:
        home = self.workspace(job_id).home
        remove(home)
        home.mkdir(mode=0o700)

    def clear(self, job_id: str) -> None:
        """Removes what only a running instruction needs; the home stays, without its caches."""
        self._remove_all_but_home(self._jobs / job_id)

    def delete(self, job_id: str) -> None:
        """Removes everything that is left of a job."""
        remove(self._jobs / job_id)
        remove(self.log(job_id))

    def _remove_all_but_home(self, job: Path) -> None:
        if job.is_dir():
            for path in job.iterdir():
                if path.name not in {"home", _HOME_VERSION}:
                    remove(path)
            drop_caches(job / "home", self._caches)


async def _write_attachment(path: Path, file: Attachment, store: FileStore) -> None:
    if await write_to(path, store.read(file.file or "")) != file.size:
        raise JobServerError(f"{file.name}, which came with this, is not here any more: send it again")
    await asyncio.to_thread(path.chmod, _READ_ONLY)
