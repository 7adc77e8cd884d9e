"""Which files of a folder were touched: told by what the kernel notes of each write, which no program can set back.

git's own index tells it to the second, so it reads all files again that are as young as the index: here, all of them.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

Stamp = tuple[int, int, int, int]
"""Size in bytes, time of the last write and of the last change in nanoseconds, inode."""


def stamps(directory: Path) -> dict[PurePosixPath, Stamp]:
    """Returns the stamps of all files in a folder that holds only plain files and folders."""
    return dict(_walk(directory))


def save_stamps(found: Mapping[PurePosixPath, Stamp], file: Path) -> None:
    file.write_text(json.dumps([[str(path), *stamp] for path, stamp in found.items()]), encoding="ascii")


def load_stamps(file: Path) -> dict[PurePosixPath, Stamp]:
    """Returns what was saved; nothing where there is no such file."""
    try:
        saved = json.loads(file.read_text(encoding="ascii"))
    except FileNotFoundError:
        return {}
    return {PurePosixPath(path): (size, written, changed, inode) for path, size, written, changed, inode in saved}


def _walk(directory: Path) -> Iterator[tuple[PurePosixPath, Stamp]]:
    for folder, _, names in os.walk(directory):
        inside = PurePosixPath(Path(folder).relative_to(directory).as_posix())
        for name in names:
            found = os.lstat(f"{folder}/{name}")
            yield inside / name, (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
