"""Ownership of files: if the server is root, a job's files belong to the job's own user."""

import os
from pathlib import Path


def owner(folder: Path) -> int:
    return folder.lstat().st_uid


def hand_over(path: Path, user: int) -> None:
    """Gives a file, or a folder with its contents, to a user; skips a folder that already belongs to them.

    Call it only while no program runs that could change the folder. Links are not followed.

    Raises:
        OSError: the owner cannot be changed.
    """
    if owner(path) != user:
        if path.is_dir():
            _give(path, user)
        _chown(path, user)  # last, so that an interrupted call is repeated


def hand_over_contents(folder: Path) -> None:
    """Gives the contents of a folder to the folder's owner.

    Raises:
        OSError: the owner cannot be changed.
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
