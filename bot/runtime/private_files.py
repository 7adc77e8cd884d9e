"""Files that are for their owner only: databases, which hold what people wrote, and keys."""

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o077
logger = logging.getLogger(__name__)


def owner_only(path: Path) -> bool:
    """Makes a SQLite database's file, where it is not there, for its owner only; takes an existing one, and its WAL,
    from all others.

    SQLite gives its other files the database's permissions. Where the file cannot be made, SQLite will say so better.

    Returns whether it was made.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        return True
    for file in (path, *(path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm"))):
        with suppress(FileNotFoundError):
            _take_from_others(file)
    return False


def warn_of_readers(file: Path, name: str) -> None:
    """Logs a warning where everybody on the machine may read a file with a secret. `name` is the setting's."""
    with suppress(OSError):
        if file.stat().st_mode & stat.S_IROTH:
            logger.warning("%s names a file that everybody on this machine may read: chmod o-r %s", name, file)


def _take_from_others(file: Path) -> None:
    mode = file.stat().st_mode
    if not mode & _OTHERS:
        return
    try:
        file.chmod(mode & 0o7777 & ~_OTHERS)
    except OSError as error:
        logger.warning("Others may read %s, and that cannot be changed: %s.", file, error.strerror)
