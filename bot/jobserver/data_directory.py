"""Where the jobs of a data directory are, whose it is, and whether a server may go on with it.

1.0.0, when it ran as root, gave the folders of jobs to other users.
"""

import os
import shlex
from collections.abc import Collection
from pathlib import Path

from bot.errors import SchemaMismatch
from bot.jobserver.errors import JobServerError
from bot.jobserver.settings import PREFIX
from bot.jobserver.settings.process import ProcessSettings
from bot.jobserver.store.database import Database, sqlite_url
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.queue.engine import sqlite_path

OF_1_0_0 = ("mirror.git", "uploads", "copies", "ready")
"""The folders of 1.0.0 for its one project: the first two are taken over."""
_OWN = ("*.sqlite3", "mirror.git", "mirrors", "mirrors/*", "jobs", "jobs/*", "jobs/*/*")
"""`chown -R` changes a folder after what is in it, as 1.0.0 did, so nothing further down has to be looked at."""


def find_database(process: ProcessSettings, data: Path) -> tuple[str, bool]:
    """Returns the URL of the database, a file in the data directory unless the settings name another, and whether it is
    there. Blocks. Raises JobServerError.
    """
    file, given = data / "jobs.sqlite3", process.database_url
    if given is None:
        if any((data / "jobs").glob("*")) and not file.exists():
            words = f"restore it, or set {PREFIX}DATABASE_URL if it named their database"
            raise JobServerError(f"{file}, with the jobs of this directory, is missing: {words}")
        return sqlite_url(file), file.exists()
    if file.exists():
        raise JobServerError(f"{file} has jobs that {PREFIX}DATABASE_URL would leave behind: use another directory")
    return given.get_secret_value(), True


async def owner_of_1_0_0(data: Path, url: str, served: Collection[str]) -> str | None:
    """Returns the project of 1.0.0, which had one, if its folders are beside the database: asked before it changes.

    Raises:
        JobServerError: it is not among those that are served.
    """
    if sqlite_path(url) is None or not any((data / folder).exists() for folder in OF_1_0_0):
        return None
    database = Database(url)
    try:
        owner = await InstructionQueue(database).newest_project()
    except SchemaMismatch:
        return None  # it has no tables yet
    finally:
        await database.close()
    if owner is not None and owner not in served:
        words = f"set {PREFIX}PROJECT_ID={owner}, or add a table [projects.{owner}] to the file of the projects"
        raise JobServerError(f"{data} has jobs of 1.0.0, of a project {owner}, which is not served: {words}")
    return owner


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
                f"{path} belongs to user {owner}, and the job server runs as user {user}: {_remedy(directory)}"
            )


def not_usable(directory: Path, error: OSError) -> str:
    """Says why a data directory cannot be used and, if it is closed to the server's user, how to change that."""
    why = "it is a file" if isinstance(error, FileExistsError) else error.strerror
    more = f": {_remedy(directory)}" if isinstance(error, PermissionError) else ""
    return f"the data directory {directory} cannot be used: {why}{more}"


def _remedy(directory: Path) -> str:
    """Says how to give the data directory to the server's user, with the command at the end."""
    if not os.path.isdir(directory):  # noqa: PTH112 - Path's raises if a folder above is closed
        return f"a folder above it is closed to user {os.geteuid()}"
    command = f"chown -hR {os.geteuid()}:{os.getegid()} {shlex.quote(str(directory.absolute()))}"
    return f"give this user all of the data directory, as root, and start the job server again: {command}"
