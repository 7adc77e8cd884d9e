"""Ownership of files: where the server is root, a job's files belong to the job's own user."""

import os
from pathlib import Path


def owner(folder: Path) -> int:
    return folder.lstat().st_uid


def hand_over(path: Path, user: int) -> None:
    """Makes a file or a folder with all that it holds this user's; a folder that is already is not looked into.

    To be called while no program runs that could change the folder. No link is followed.

    Raises:
        OSError: it cannot be done.
    """
    if owner(path) != user:
        if path.is_dir():
            _give(path, user)
        _chown(path, user)  # last: what is interrupted is done again


def hand_over_contents(folder: Path) -> None:
    """Makes all that a folder holds its owner's.

    Raises:
        OSError: it cannot be done.
    """
    if owner(folder) != os.geteuid():
        _give(folder, owner(folder))


def _give(folder: Path, user: int) -> None:
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                if entry.stat(follow_symlinks=False).st_uid != user:
                    _chown(entry.path, user)


def _chown(path: str | Path, user: int) -> None:
    group = os.getegid() if user == os.geteuid() else user
    os.chown(path, user, group, follow_symlinks=False)
