"""Removes everything but plain files from a working copy: links, git directories, devices. Follows no links."""

import contextlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

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
    for entry, path in walk(directory):
        if removed.covers(path):
            continue
        if is_git_directory(entry.name):
            if path.parent.parts and path.parent not in known_folders:
                removed.note(path.parent, f"the folder `{path.parent}` is a git repository of its own")
                remove(directory / path.parent)
                continue
        elif reason := _why_not(entry, path):
            removed.note(path, reason)
        else:
            continue
        remove(directory / path)
    return removed


def is_git_directory(name: str) -> bool:
    """Tells whether any file system reads this name as that of a git directory (git's rules for NTFS and HFS+)."""
    if name.isascii() and "git" not in name.lower():
        return False  # nearly all
    visible = _INVISIBLE.sub("", name)
    return any(_GIT_DIRECTORY.fullmatch(part) for part in visible.split("\\"))


def walk(directory: Path) -> Iterator[tuple[os.DirEntry[str], PurePosixPath]]:
    """Yields everything below a directory, folders before their contents; skips what is removed meanwhile."""
    waiting = [PurePosixPath()]
    while waiting:
        folder = waiting.pop()
        for entry in _entries(directory / folder):
            path = folder / entry.name
            yield entry, path
            if entry.is_dir(follow_symlinks=False) and not _is_too_deep(path):
                waiting.append(path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        if stat.S_IMODE(folder.lstat().st_mode) & stat.S_IRWXU != stat.S_IRWXU:
            folder.chmod(stat.S_IRWXU)
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _why_not(entry: os.DirEntry[str], path: PurePosixPath) -> str | None:
    """Returns why something is removed; makes a file that stays readable."""
    if entry.is_symlink():
        return f"`{path}` is a link"
    if entry.is_dir(follow_symlinks=False):
        return f"a folder in `{path.parts[0]}` is nested too deeply" if _is_too_deep(path) else None
    if not entry.is_file(follow_symlinks=False):
        return f"`{path}` is not a plain file"
    _make_readable(entry)
    return None


def _is_too_deep(path: PurePosixPath) -> bool:
    return len(path.parts) > _DEEPEST or len(os.fsencode(path)) > _LONGEST_PATH


def _make_readable(entry: os.DirEntry[str]) -> None:
    with contextlib.suppress(FileNotFoundError):  # it went with a folder above it
        mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
        if not mode & stat.S_IRUSR:
            Path(entry.path).chmod(mode | stat.S_IRUSR)
