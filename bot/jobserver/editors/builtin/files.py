"""Finds, reads and writes the pages of a working copy without ever following a link out of it."""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from bot.jobserver.documents.front_matter import quick_title
from bot.jobserver.documents.navigation import NAVIGATION_FILES
from bot.jobserver.documents.parsing import decoded, is_markdown, is_page
from bot.jobserver.repository.git_reader import GitReader, TreeEntry
from bot.jobserver.repository.snapshot import note_removed
from bot.jobserver.repository.tree_files import folders_of

_SKIPPED_FOLDERS = {".git", "node_modules", ".venv"}
_SIZE_LIMIT = 5_000_000
_MAY_LIST_PAGES = re.compile(
    r"(?:.{0,40}(?:sidebar|nav|toc|meta|config|redirect|_category_|book|site|menu|gitbook).{0,40}"
    r"\.(?:json|ya?ml|toml|[cm]?[jt]sx?)|conf\.py|\.pages|_redirects)"
)
_MOST_SETTINGS = 50


class LowerFiles:
    """The lower layer of a copy: files that are read from a git tree until they are changed.

    Without `git` there is none, and all files are in the copy. `note` is the file that lists what was removed.
    """

    def __init__(self, git: GitReader | None = None, tree: str = "", note: Path = Path()) -> None:
        self._git = git
        self._tree = tree
        self._note = note
        self._hidden: set[PurePosixPath] = set()
        self._removed: set[PurePosixPath] = set()
        self._opened = contextlib.ExitStack()

    def paths(self) -> Collection[PurePosixPath]:
        """Returns all plain files of at most 5 MB that are not hidden."""
        return [path for path in self._blobs if path not in self._hidden]

    def has(self, path: PurePosixPath) -> bool:
        """Tells whether a path is one of `paths`."""
        return path in self._blobs and path not in self._hidden

    def is_taken(self, path: PurePosixPath) -> bool:
        """Tells whether a file, link or folder has this name."""
        return (path in self._entries and path not in self._removed) or self.has_folder(path)

    def has_folder(self, path: PurePosixPath) -> bool:
        return path in self._folders

    def read(self, path: PurePosixPath) -> bytes:
        """Returns the contents of a file in `paths`. Raises OSError."""
        return self._read(self._blobs[path])

    def hide(self, path: PurePosixPath) -> None:
        """Records that this file is now in the upper layer."""
        self._hidden.add(path)

    def remove(self, path: PurePosixPath) -> None:
        """Records that this file was removed; ignores a path that is not in the tree."""
        if path in self._entries:
            note_removed(path, self._note)
            self._hidden.add(path)
            self._removed.add(path)

    def close(self) -> None:
        self._opened.close()

    @cached_property
    def _read(self) -> Callable[[str], bytes]:
        if self._git is None:
            raise OSError(errno.ENOENT, "there is no lower layer")
        return self._opened.enter_context(self._git.blobs())

    @cached_property
    def _entries(self) -> dict[PurePosixPath, TreeEntry]:
        return self._git.entries(self._tree) if self._git else {}

    @cached_property
    def _blobs(self) -> dict[PurePosixPath, str]:
        return {path: entry.id for path, entry in self._entries.items() if entry.is_readable}

    @cached_property
    def _folders(self) -> set[PurePosixPath]:
        submodules = {path for path, entry in self._entries.items() if entry.kind == "commit"}
        return folders_of(self._entries) | submodules if self._git else set()


@dataclass(frozen=True)
class WorkingFiles:
    """The files below `root` and in the layer below. All paths are relative to the root."""

    root: Path
    lower: LowerFiles = field(default_factory=LowerFiles)

    def paths(self) -> list[PurePosixPath]:
        """Returns the Markdown pages that are plain files of at most 5 MB, those nearest to the root first."""
        return self._find(lambda name: is_markdown(PurePosixPath(name)))

    def other_pages(self) -> list[PurePosixPath]:
        """Returns the pages in other formats, which this editor never changes."""
        return self._find(lambda name: is_page(PurePosixPath(name)) and not is_markdown(PurePosixPath(name)))

    def navigation_files(self) -> list[PurePosixPath]:
        return self._find(NAVIGATION_FILES.__contains__)

    def _find(self, is_wanted: Callable[[str], bool]) -> list[PurePosixPath]:
        below = [path for path in self.lower.paths() if is_wanted(path.name) and not _is_skipped(path)]
        return sorted([*self._walk(is_wanted), *below], key=lambda path: (len(path.parts), path.parts))

    def _walk(self, is_wanted: Callable[[str], bool]) -> Iterator[PurePosixPath]:
        for folder, folders, files in os.walk(self.root, followlinks=False):
            folders[:] = [name for name in folders if name.lower() not in _SKIPPED_FOLDERS]
            inside = PurePosixPath(Path(folder).relative_to(self.root).as_posix())
            for name in filter(is_wanted, files):
                if _is_plain(f"{folder}/{name}"):
                    yield inside / name

    def read(self, path: PurePosixPath) -> str | None:
        """Returns the text of a file with its original line ends; None if it is not UTF-8 text."""
        if self.lower.has(path):
            return decoded(self.lower.read(path))
        with self._opened(path, os.O_RDONLY) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as stream:
            return decoded(stream.read(_SIZE_LIMIT + 1))

    def title(self, path: PurePosixPath) -> str | None:
        """Returns a page's title, if it is near the start of the page."""
        text = self.read(path)
        return quick_title(text) if text else None

    def write(self, path: PurePosixPath, text: str) -> None:
        if self.lower.has(path):
            self._bring_up(path, text.encode())
            return
        with self._opened(path, os.O_WRONLY | os.O_TRUNC) as descriptor:
            _write_all(descriptor, text.encode())

    def on_disk(self, paths: Iterable[PurePosixPath]) -> Path:
        """Writes these files to the disk for other programs, and returns the root."""
        for path in filter(self.lower.has, paths):
            self._bring_up(path, self.lower.read(path))
        return self.root

    def _bring_up(self, path: PurePosixPath, contents: bytes) -> None:
        """Moves a file from the lower layer to the disk, with these contents."""
        self.lower.hide(path)
        with self._opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, make_folders=True) as descriptor:
            _write_all(descriptor, contents)

    def create(self, path: PurePosixPath, text: str) -> None:
        """Writes a new file.

        Raises:
            FileExistsError: the path exists, even as a link.
        """
        self._check_new(path)
        has_folder = self.lower.has_folder(path.parent)
        with self._opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, make_folders=has_folder) as descriptor:
            _write_all(descriptor, text.encode())

    def _check_new(self, path: PurePosixPath) -> None:
        if self.lower.is_taken(path):
            raise FileExistsError(errno.EEXIST, "it is there already", str(path))
        if any(self.lower.is_taken(folder) and not self.lower.has_folder(folder) for folder in path.parents):
            raise NotADirectoryError(errno.ENOTDIR, "it is no folder", str(path.parent))

    def move(self, old: PurePosixPath, new: PurePosixPath, text: str) -> None:
        """Writes a file under its new name, which can be the old one.

        Raises:
            FileExistsError: the new name is taken.
        """
        if old == new:
            self.write(old, text)
            return
        self.create(new, text)
        if not self.lower.has(old):
            with self._folder(old) as descriptor:
                os.unlink(old.name, dir_fd=descriptor)
        self.lower.remove(old)

    def settings_above(self, page: PurePosixPath) -> list[PurePosixPath]:
        """Returns files beside or above a page that may list pages: other kinds of menus, redirects, settings."""
        folders = [*page.parents, *(folder / ".vitepress" for folder in page.parents)]
        return [folder / name for folder in folders for name in self._settings_in(folder)]

    def _settings_in(self, folder: PurePosixPath) -> list[str]:
        below = (path.name for path in self.lower.paths() if path.parent == folder)
        names = sorted([*_files_in(self.root / folder), *below])
        known = (*NAVIGATION_FILES, "package.json")
        return [name for name in names if name not in known and _MAY_LIST_PAGES.fullmatch(name.lower())][
            :_MOST_SETTINGS
        ]

    @contextlib.contextmanager
    def _opened(self, path: PurePosixPath, flags: int, *, make_folders: bool = False) -> Iterator[int]:
        """Opens each folder from the root on, so that none can be a link (raises ELOOP or ENOTDIR)."""
        with self._folder(path, make_folders=make_folders) as folder:
            descriptor = os.open(path.parts[-1], flags | os.O_NOFOLLOW, 0o644, dir_fd=folder)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def _folder(self, path: PurePosixPath, *, make_folders: bool = False) -> Iterator[int]:
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
            yield descriptor


def _files_in(folder: Path) -> list[str]:
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [entry.name for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]


def _is_skipped(path: PurePosixPath) -> bool:
    return any(part.lower() in _SKIPPED_FOLDERS for part in path.parts[:-1])


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _is_plain(path: str) -> bool:
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        return stat.S_ISREG(status.st_mode) and status.st_size <= _SIZE_LIMIT
    return False
