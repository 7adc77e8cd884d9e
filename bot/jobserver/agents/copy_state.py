"""Whether the files of a copy changed: told by what the file system notes of each, not by reading them."""

import os
from pathlib import Path

_MOST_FILES = 200_000

CopyState = dict[str, tuple[int, int, int]]
"""Mode, size and time of the last change in ns, which no program can set back, by path."""


def copy_state(copy: Path) -> CopyState:
    """Returns the state of the files and links below `copy`; `.git` and empty folders are nothing that counts."""
    found: CopyState = {}
    for folder, folders, files in os.walk(copy):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118 - fast
        for name in (*files, *links):
            path = os.path.join(folder, name)  # noqa: PTH118 - twice as fast, and there can be many
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            found[path] = (status.st_mode, status.st_size, status.st_ctime_ns)
        if len(found) > _MOST_FILES:
            break
    return found
