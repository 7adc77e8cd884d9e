"""The files beneath a working copy, read from git on demand: only changed files are written to the disk."""

import contextlib
import errno
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path, PurePosixPath

from bot.jobserver.repository.git_reader import GitReader, TreeEntry
from bot.jobserver.repository.snapshot import note_removed
from bot.jobserver.repository.tree_files import folders_of


class LowerFiles:
    """The lower layer of a copy: a tree of git. Without `git` there is none, and all files lie in the copy.

    `note` is the file that tells the server what was removed of the tree.
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
        """Tells whether this is one of them."""
        return path in self._blobs and path not in self._hidden

    def is_taken(self, path: PurePosixPath) -> bool:
        """Tells whether anything has this name: a file, a link, a folder."""
        return (path in self._entries and path not in self._removed) or self.has_folder(path)

    def has_folder(self, path: PurePosixPath) -> bool:
        return path in self._folders

    def read(self, path: PurePosixPath) -> bytes:
        """Returns the contents of what is in `paths`. Raises OSError."""
        return self._read(self._blobs[path])

    def hide(self, path: PurePosixPath) -> None:
        """Notes that the upper layer has this file from now on."""
        self._hidden.add(path)

    def remove(self, path: PurePosixPath) -> None:
        """Notes that this file was removed; a path that is not there is ignored."""
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
