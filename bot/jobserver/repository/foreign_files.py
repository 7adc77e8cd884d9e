"""Removes everything but plain files from a working copy: links, git directories, devices. Follows no links."""

import contextlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path, PurePosixPath
from typing import assert_never

_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_GIT_DIRECTORY = re.compile(r"(?:\.git|git~[0-9])[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
_DEEPEST = 60
"""Folders nested deeper than this, or with paths of more than _LONGEST_PATH bytes, are removed unread."""
_LONGEST_PATH = 2000


def remove(path: Path) -> None:
    """Removes a file, a link, or a folder with its contents, if it exists.

    Also works for folders without permissions and for those nested deeper than Python can follow.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
        try:
            shutil.rmtree(path)
        except (RecursionError, OSError):
            for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
                subprocess.run([*command, "--", str(path)], check=False, capture_output=True)


class _Kind(Enum):
    FILE = auto()
    FOLDER = auto()
    GIT_DIRECTORY = auto()
    LINK = auto()
    SPECIAL = auto()
    TOO_DEEP = auto()


@dataclass
class RemovedFiles:
    """The paths that were removed from a working copy, and descriptions of them."""

    paths: set[PurePosixPath] = field(default_factory=set)
    descriptions: list[str] = field(default_factory=list)

    def covers(self, path: PurePosixPath) -> bool:
        """Tells whether this path or a folder above it was removed."""
        return bool(self.paths) and (path in self.paths or any(parent in self.paths for parent in path.parents))

    def note(self, path: PurePosixPath, description: str) -> None:
        if path not in self.paths:
            self.paths.add(path)
            self.descriptions.append(description)


def sweep(directory: Path, known_folders: Collection[PurePosixPath]) -> RemovedFiles:
    """Removes everything that is neither a plain file nor a folder, and every git directory.

    A folder that contains a git directory is a repository, and is removed entirely unless it existed before.
    """
    removed = RemovedFiles()
    for kind, path in _walk(directory):
        if removed.covers(path):
            continue
        match kind:
            case _Kind.FILE | _Kind.FOLDER:
                continue
            case _Kind.GIT_DIRECTORY if path.parent.parts and path.parent not in known_folders:
                remove(directory / path.parent)
                removed.note(path.parent, f"the folder `{path.parent}` is a git repository of its own")
                continue
            case _Kind.GIT_DIRECTORY:
                pass  # removed without a note
            case _Kind.LINK:
                removed.note(path, f"`{path}` is a link")
            case _Kind.SPECIAL:
                removed.note(path, f"`{path}` is not a plain file")
            case _Kind.TOO_DEEP:
                removed.note(path, f"a folder in `{path.parts[0]}` is nested too deeply")
            case _:
                assert_never(kind)
        remove(directory / path)
    return removed


def is_git_directory(name: str) -> bool:
    """Tells whether any file system reads this name as that of a git directory (git's rules for NTFS and HFS+)."""
    if name.isascii() and "git" not in name.lower():
        return False  # nearly all
    visible = _INVISIBLE.sub("", name)
    return any(_GIT_DIRECTORY.fullmatch(part) for part in visible.split("\\"))


def _walk(directory: Path) -> Iterator[tuple[_Kind, PurePosixPath]]:
    """Yields everything below a directory, folders before their contents; skips what is removed meanwhile."""
    waiting = [PurePosixPath()]
    while waiting:
        folder = waiting.pop()
        for entry in _entries(directory / folder):
            path = folder / entry.name
            kind = _kind(entry, path)
            yield kind, path
            if kind is _Kind.FOLDER:
                waiting.append(path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        if stat.S_IMODE(folder.lstat().st_mode) & stat.S_IRWXU != stat.S_IRWXU:
            folder.chmod(stat.S_IRWXU)
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _kind(entry: os.DirEntry[str], path: PurePosixPath) -> _Kind:
    if is_git_directory(entry.name):
        return _Kind.GIT_DIRECTORY
    if entry.is_symlink():
        return _Kind.LINK
    if entry.is_dir(follow_symlinks=False):
        too_deep = len(path.parts) > _DEEPEST or len(os.fsencode(path)) > _LONGEST_PATH
        return _Kind.TOO_DEEP if too_deep else _Kind.FOLDER
    if not entry.is_file(follow_symlinks=False):
        return _Kind.SPECIAL
    _make_readable(entry)
    return _Kind.FILE


def _make_readable(entry: os.DirEntry[str]) -> None:
    with contextlib.suppress(FileNotFoundError):  # it went with a folder above it
        mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
        if not mode & stat.S_IRUSR:
            Path(entry.path).chmod(mode | stat.S_IRUSR)
