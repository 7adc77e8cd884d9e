"""The files beneath a working copy, read from git one by one: what is not changed is not written to the disk."""

import contextlib
import errno
import subprocess
from collections.abc import Collection
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

from bot.jobserver.repository.snapshot import note_removed
from bot.jobserver.repository.tree_files import folders_of
from bot.jobserver.subprocesses import Command

_LARGEST = 5_000_000
_PLAIN = "100"
"""How the modes of plain files begin."""


class Lower(Protocol):
    """The lower layer of a copy. A file that was written to the upper one is `hidden` from then on."""

    def paths(self) -> Collection[PurePosixPath]:
        """Returns all plain files of at most 5 MB."""
        ...

    def has(self, path: PurePosixPath) -> bool:
        """Whether this is one of them."""
        ...

    def is_taken(self, path: PurePosixPath) -> bool:
        """Whether anything has this name: a file, a link, a folder."""
        ...

    def has_folder(self, path: PurePosixPath) -> bool: ...

    def read(self, path: PurePosixPath) -> bytes:
        """Returns the contents of what is in `paths`. Raises OSError."""
        ...

    def hide(self, path: PurePosixPath) -> None: ...

    def remove(self, path: PurePosixPath) -> None:
        """Notes that it is gone; none is no error."""
        ...

    def close(self) -> None: ...


class NothingBelow:
    """For a copy whose files all lie in it."""

    def paths(self) -> Collection[PurePosixPath]:
        return ()

    def has(self, _path: PurePosixPath) -> bool:
        return False

    def is_taken(self, _path: PurePosixPath) -> bool:
        return False

    def has_folder(self, _path: PurePosixPath) -> bool:
        return False

    def read(self, path: PurePosixPath) -> bytes:
        raise FileNotFoundError(errno.ENOENT, "no such file", str(path))

    def hide(self, path: PurePosixPath) -> None:
        pass

    def remove(self, path: PurePosixPath) -> None:
        pass

    def close(self) -> None:
        pass


class TreeBelow:
    """A tree of git. `note` is the file that tells the server what was removed of it."""

    def __init__(self, git: Command, tree: str, note: Path) -> None:
        self._git = git
        self._tree = tree
        self._note = note
        self._hidden: set[PurePosixPath] = set()
        self._removed: set[PurePosixPath] = set()
        self._opened = contextlib.ExitStack()

    def paths(self) -> Collection[PurePosixPath]:
        return [path for path in self._blobs if path not in self._hidden]

    def has(self, path: PurePosixPath) -> bool:
        return path in self._blobs and path not in self._hidden

    def is_taken(self, path: PurePosixPath) -> bool:
        return (path in self._entries and path not in self._removed) or self.has_folder(path)

    def has_folder(self, path: PurePosixPath) -> bool:
        return path in self._folders

    def read(self, path: PurePosixPath) -> bytes:
        stdin, stdout = self._reading.stdin, self._reading.stdout
        if stdin is None or stdout is None:
            raise OSError(errno.EIO, "git cannot be asked")
        stdin.write(f"{self._blobs[path]}\n".encode())
        stdin.flush()
        size = stdout.readline()
        if not size.strip().isdigit():
            raise OSError(errno.EIO, "git cannot read it", str(path))
        data = stdout.read(int(size) + 1)
        return data[:-1]

    def hide(self, path: PurePosixPath) -> None:
        self._hidden.add(path)

    def remove(self, path: PurePosixPath) -> None:
        if path in self._entries:
            note_removed(path, self._note)
            self._hidden.add(path)
            self._removed.add(path)

    def close(self) -> None:
        self._opened.close()

    @cached_property
    def _reading(self) -> subprocess.Popen[bytes]:
        """It ends when its standard input does, with this process at the latest."""
        return self._opened.enter_context(self._start("cat-file", "--batch=%(objectsize)", stdin=subprocess.PIPE))

    @cached_property
    def _entries(self) -> dict[PurePosixPath, list[str]]:
        """Mode, kind, id and size of each."""
        with self._start("ls-tree", "-r", "-l", "-z", "--full-tree", self._tree, stdin=subprocess.DEVNULL) as process:
            listed, _ = process.communicate()
        if process.returncode:
            raise OSError(errno.EIO, "git cannot list the files")
        lines = (line.partition("\t") for line in listed.decode(errors="surrogateescape").split("\0") if line)
        return {PurePosixPath(name): facts.split() for facts, _, name in lines}

    @cached_property
    def _blobs(self) -> dict[PurePosixPath, str]:
        return {
            path: blob
            for path, (mode, _, blob, size) in self._entries.items()
            if mode.startswith(_PLAIN) and size.isdigit() and int(size) <= _LARGEST  # of one that is missing: BAD
        }

    @cached_property
    def _folders(self) -> set[PurePosixPath]:
        submodules = {path for path, (_, kind, *_) in self._entries.items() if kind == "commit"}
        return folders_of(self._entries) | submodules

    def _start(self, *arguments: str, stdin: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._git.arguments, *arguments], cwd=self._git.directory, env=dict(self._git.environment), stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
