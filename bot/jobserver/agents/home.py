"""Files for a program's HOME, written where the program may have left links in the meantime."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
MOST_FILES = 1000
LARGEST_FILE = 10_000_000


def write_file(home: Path, path: PurePosixPath, data: bytes, *, replace: bool = True) -> None:
    """Writes a file below `home`, readable by its owner only, who is that of `home`; no link on the way is followed,
    those are removed.

    Raises:
        OSError: it cannot be written.
    """
    with contextlib.ExitStack() as stack:
        directory = _opened(stack, os.open(home, os.O_RDONLY | os.O_DIRECTORY))
        for part in path.parent.parts:
            directory = _opened(stack, _folder(directory, part))
        if _exists(directory, path.name):
            if not replace:
                return
            os.unlink(path.name, dir_fd=directory)
        with os.fdopen(os.open(path.name, _NEW_FILE, 0o600, dir_fd=directory), "wb") as stream:
            _give(stream.fileno(), directory)
            stream.write(data)


def _opened(stack: contextlib.ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def _folder(parent: int, name: str) -> int:
    if _exists(parent, name) and not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    folder = os.open(name, _DIRECTORY, dir_fd=parent)
    _give(folder, parent)
    return folder


def _give(descriptor: int, parent: int) -> None:
    """Makes a file or a folder its parent's owner's, if it is not."""
    given, own = os.fstat(parent), os.fstat(descriptor)
    if given.st_uid != own.st_uid:
        os.fchown(descriptor, given.st_uid, given.st_gid)


def _exists(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def files_below(template: Path) -> Iterator[PurePosixPath]:
    """Yields the regular files of a folder that whoever runs the server has made, by their paths in it.

    Raises:
        OSError: it cannot be read, or holds more than a HOME begins with.
    """
    found = 0
    for folder, _, names in os.walk(template, onerror=_raise):
        for name in sorted(names):
            path = Path(folder, name)
            found += 1
            if found > MOST_FILES or path.stat().st_size > LARGEST_FILE:
                raise OSError(0, f"it has more than {MOST_FILES} files, or one over {LARGEST_FILE} bytes")
            yield PurePosixPath(path.relative_to(template))


def _raise(error: OSError) -> None:
    raise error
