"""The pages of a working copy: found, read and written without ever following a link out of it."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.jobserver.documents.navigation import NAVIGATION_FILES
from bot.jobserver.documents.parsing import decoded, is_page

_SKIPPED_FOLDERS = {".git", "node_modules", ".venv"}
_SIZE_LIMIT = 5_000_000
PICTURE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg"})


@dataclass(frozen=True)
class WorkingFiles:
    """All paths are relative to the root, with forward slashes."""

    root: Path

    def paths(self) -> list[PurePosixPath]:
        """Returns every page that is a plain file of at most 5 MB, sorted; those nearest to the root first."""
        found = self._walk(lambda name: is_page(PurePosixPath(name)))
        return sorted(found, key=lambda path: (len(path.parts), path))

    def navigation_files(self) -> list[PurePosixPath]:
        return list(self._walk(NAVIGATION_FILES.__contains__))

    def _walk(self, is_wanted: Callable[[str], bool]) -> Iterator[PurePosixPath]:
        for folder, folders, files in os.walk(self.root, followlinks=False):
            folders[:] = [name for name in folders if name.lower() not in _SKIPPED_FOLDERS]
            inside = PurePosixPath(Path(folder).relative_to(self.root).as_posix())
            for name in filter(is_wanted, files):
                if _is_plain(f"{folder}/{name}"):
                    yield inside / name

    def read(self, path: PurePosixPath) -> str | None:
        """Returns the text of a file with its line ends as they are; None if it is not UTF-8 text."""
        with self._opened(path, os.O_RDONLY) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as stream:
            return decoded(stream.read(_SIZE_LIMIT + 1))

    def write(self, path: PurePosixPath, text: str) -> None:
        with self._opened(path, os.O_WRONLY | os.O_TRUNC) as descriptor:
            _write_all(descriptor, text.encode())

    def create(self, path: PurePosixPath, text: str) -> None:
        """Writes a new file.

        Raises:
            FileExistsError: something is there already, a link included.
        """
        with self._opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            _write_all(descriptor, text.encode())

    def pictures(self) -> list[PurePosixPath]:
        return list(self._walk(lambda name: PurePosixPath(name).suffix.lower() in PICTURE_SUFFIXES))

    def place(self, path: PurePosixPath, contents: bytes) -> None:
        """Writes a new file, in a folder that is made where it is missing.

        Raises:
            FileExistsError: something is there already, a link included.
        """
        with self._opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, make_folders=True) as descriptor:
            _write_all(descriptor, contents)

    @contextlib.contextmanager
    def _opened(self, path: PurePosixPath, flags: int, *, make_folders: bool = False) -> Iterator[int]:
        """Opens step by step from the root, so that no folder on the way can be a link (ELOOP or ENOTDIR then)."""
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise PermissionError("a path must stay inside the repository")
        with contextlib.ExitStack() as stack:
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            for part in path.parts[:-1]:
                if make_folders:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=descriptor)
                descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
                stack.callback(os.close, descriptor)
            descriptor = os.open(path.parts[-1], flags | os.O_NOFOLLOW, 0o644, dir_fd=descriptor)
            stack.callback(os.close, descriptor)
            yield descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _is_plain(path: str) -> bool:
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        return stat.S_ISREG(status.st_mode) and status.st_size <= _SIZE_LIMIT
    return False
