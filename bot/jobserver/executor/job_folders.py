"""The folders of jobs: for each one the copy that is edited, the home of its programs, and its log."""

import contextlib
import os
import re
import shutil
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from bot.jobserver.editors.interface import TaskFile
from bot.jobserver.errors import JobServerError
from bot.jobserver.file_owners import hand_over, owner
from bot.jobserver.repository.foreign_files import remove
from bot.jobserver.sandbox.interface import Workspace
from bot.jobserver.sandbox.job_users import JobUsers, ServersUser
from bot.jobserver.store.records import Attachment, Instruction
from bot.jobserver.store.uploads import uploads_folder

_LONGEST_NAME = 80
_LONGEST_SUFFIX = 12
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_READ_ONLY = 0o400
ANY_PROGRAMS = (
    ".cache", ".npm/_cacache", ".npm/_logs", ".npm/_npx", ".bun/install/cache", ".cargo/registry", ".local/share/Trash",
    ".local/share/pnpm/store", ".yarn/berry/cache", "go/pkg",
)  # fmt: skip
"""Paths in HOME."""
_SERVERS = ServersUser()


def lay_out(attachments: Sequence[Attachment], uploads: Path, folder: Path) -> tuple[TaskFile, ...]:
    """Copies the files into a folder, which is made where there are any; returns them as they lie there, in order.

    They are copies: a program without a sandbox could change what it is given.

    Raises:
        JobServerError: one of them is gone, or the disk does not let it.
    """
    if not attachments:
        return ()
    # The same file under the same name, sent again, is the one that lies there.
    files = list(dict.fromkeys((attachment.upload_id, attachment.name) for attachment in attachments))
    names = dict(zip(files, safe_names([name for _, name in files]), strict=True))
    try:
        folder.mkdir(mode=0o700)
        for (upload_id, _), name in names.items():
            shutil.copyfile(uploads / upload_id, folder / name)
            (folder / name).chmod(_READ_ONLY)
    except OSError as error:
        raise JobServerError(f"the files that came with this cannot be laid out: {error.strerror}") from error
    return tuple(
        TaskFile(names[file.upload_id, file.name], file.name, file.mimetype, file.size) for file in attachments
    )


def safe_names(names: Sequence[str]) -> list[str]:
    """Returns a file name for each, no two alike, also where capitals make no difference."""
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
    """Returns the last part of a path as a plain name that is neither hidden nor an option."""
    path = PurePosixPath(name.replace("\\", "/"))
    suffix = _UNSAFE.sub("", path.suffix)[:_LONGEST_SUFFIX]
    stem = _UNSAFE.sub("-", path.name.removesuffix(path.suffix)).strip("-.")[:_LONGEST_NAME]
    return f"{stem or 'file'}{suffix if suffix != '.' else ''}"


def drop_caches(home: Path, caches: Iterable[str] = ()) -> None:
    """Removes these folders and those of any program, once nothing runs that could change HOME meanwhile.

    They only save time, and would be kept once for each job. A link is removed itself, and nothing behind it.
    """
    for cache in (*ANY_PROGRAMS, *caches):
        if _is_within(home, Path(cache)):
            remove(home / cache)


def _is_within(home: Path, path: Path) -> bool:
    """Whether all that a path leads through are folders of this HOME."""
    try:
        return all(stat.S_ISDIR((home / folder).lstat().st_mode) for folder in path.parents)
    except OSError:
        return False


class JobFolders:
    """`directory` holds `jobs/<id>/` with `copy`, `home` and `attachments`, and `logs/<id>.log`. All methods block.

    `caches` are folders of the homes that are not kept, besides those of any program. A job's copy and home belong to
    its user of `users`, by which a job knows it again.
    """

    def __init__(self, directory: Path, caches: Sequence[str] = (), users: JobUsers | ServersUser = _SERVERS) -> None:
        self._caches = caches
        self._users = users
        self._choosing = threading.Lock()
        self._jobs = directory / "jobs"
        self._logs = directory / "logs"
        self._uploads = uploads_folder(directory)
        self._of_older_versions = directory / "copies"

    def prepare(self) -> None:
        """Makes the folders, and removes the copies that a killed server left."""
        remove(self._of_older_versions)
        for folder in (self._jobs, self._logs):
            folder.mkdir(mode=0o700, exist_ok=True)
        for job in self._jobs.iterdir():
            self._remove_all_but_home(job)

    def log(self, job_id: str) -> Path:
        return self._logs / f"{job_id}.log"

    def workspace(self, job_id: str) -> Workspace:
        """Returns the folders; the first two are there after `make_empty`, that of the attachments after `attach`."""
        job = self._jobs / job_id
        return Workspace(job / "copy", job / "home", job / "attachments")

    def make_empty(self, job_id: str) -> None:
        """Makes the job's folders, and empties the copy.

        Raises:
            JobServerError: the disk does not let it.
        """
        workspace = self.workspace(job_id)
        self._remove_all_but_home(workspace.copy.parent)
        try:
            for folder in (workspace.copy, workspace.home):
                folder.mkdir(mode=0o700, parents=True, exist_ok=folder == workspace.home)
            with self._choosing:
                user = self._user(workspace.home)
                self._give_home(workspace.home, user)
            hand_over(workspace.copy, user)
        except OSError as error:
            raise JobServerError(f"the job's folder cannot be made: {error.strerror}") from error

    def _user(self, home: Path) -> int:
        """Returns the user to own this home: the one before, or one that no other job has."""
        if not isinstance(self._users, JobUsers):
            return os.geteuid()
        user = owner(home)
        return user if self._users.has(user) else self._users.unused(set(self._owners()))

    def _owners(self) -> Iterator[int]:
        for job in self._jobs.iterdir():
            with contextlib.suppress(FileNotFoundError):  # it is being deleted, or is just being made
                yield owner(job / "home")

    def _give_home(self, home: Path, user: int) -> None:
        """One that cannot be walked through is emptied: what a program needs from it is sessions alone."""
        try:
            hand_over(home, user)
        except OSError:
            remove(home)
            home.mkdir(mode=0o700)
            hand_over(home, user)

    def attach(self, instruction: Instruction) -> tuple[TaskFile, ...]:
        """Lays the job's attachments into their folder, and returns those of this instruction.

        Raises:
            JobServerError: one of them cannot be read, or the disk does not let it.
        """
        folder = self._jobs / instruction.job_id / "attachments"
        placed = lay_out(instruction.attachments, self._uploads, folder)
        own = zip(instruction.attachments, placed, strict=True)
        return tuple(dict.fromkeys(file for attachment, file in own if attachment.instruction == instruction.number))

    def clear(self, job_id: str) -> None:
        """Removes what only a running instruction needs; the programs' home stays, without its caches."""
        self._remove_all_but_home(self._jobs / job_id)

    def delete(self, job_id: str) -> None:
        """Removes all that is left of a job."""
        remove(self._jobs / job_id)
        remove(self.log(job_id))

    def _remove_all_but_home(self, job: Path) -> None:
        if job.is_dir():
            for path in job.iterdir():
                if path.name != "home":
                    remove(path)
            drop_caches(job / "home", self._caches)
