"""Ownership of the data directory: 1.0.0, when it ran as root, gave the folders of jobs to other users."""

import os
import shlex
from pathlib import Path

from bot.jobserver.errors import JobServerError

_OWN = ("*.sqlite3", "mirror.git", "mirrors", "mirrors/*", "jobs", "jobs/*", "jobs/*/*")
"""`chown -R` changes a folder after what is in it, as 1.0.0 did, so nothing further down has to be looked at."""


def require_own(directory: Path) -> None:
    """Refuses a data directory in which something belongs to another user. Writes nothing, and follows no links.

    Raises:
        JobServerError: it says how to change that.
    """
    user = os.geteuid()
    for path in (path for pattern in _OWN for path in directory.glob(pattern)):
        try:
            owner = path.lstat().st_uid
        except FileNotFoundError:  # another server works here
            continue
        if owner != user:
            raise JobServerError(
                f"{path} belongs to user {owner}, and the job server runs as user {user}: {remedy(directory)}"
            )


def not_usable(directory: Path, error: OSError) -> str:
    """Says why a data directory cannot be used and, if it is closed to the server's user, how to change that."""
    why = "it is a file" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
    more = f": {remedy(directory)}" if isinstance(error, PermissionError) else ""
    return f"the data directory {directory} cannot be used: {why}{more}"


def remedy(directory: Path) -> str:
    """Says how to give the data directory to the server's user, with the command at the end."""
    if not os.path.isdir(directory):  # noqa: PTH112 - Path's raises if a folder above is closed
        return f"a folder above it is closed to user {os.geteuid()}"
    command = f"chown -hR {os.geteuid()}:{os.getegid()} {shlex.quote(str(directory.absolute()))}"
    return f"give this user all of the data directory, as root, and start the job server again: {command}"
