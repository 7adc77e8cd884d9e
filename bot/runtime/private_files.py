"""Files that only their owner may read: databases with people's messages, and keys."""

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o077
logger = logging.getLogger(__name__)


def owner_only(path: Path) -> bool:
    """Makes a SQLite database's file accessible to its owner only. Returns whether the file was created.

    A missing file is created; from an existing one and its WAL, the permissions of others are removed. SQLite gives its
    other files the same permissions as the database. If the file cannot be created, SQLite reports that better.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        return True
    for file in (path, *(path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm"))):
        with suppress(FileNotFoundError):
            _remove_access_of_others(file)
    return False


def warn_of_readers(file: Path, name: str) -> None:
    """Logs a warning if everybody on the machine may read a file with a secret. `name` is the setting's name."""
    if everybody_may_read(file):
        logger.warning("%s names a file that everybody on this machine may read: chmod o-r %s", name, file)


def everybody_may_read(file: Path) -> bool:
    """Whether it is a file that everybody on the machine may read; not where that cannot be told."""
    with suppress(OSError):
        mode = file.stat().st_mode
        return stat.S_ISREG(mode) and bool(mode & stat.S_IROTH)
    return False


def _remove_access_of_others(file: Path) -> None:
    mode = file.stat().st_mode
    if not mode & _OTHERS:
        return
    try:
        file.chmod(mode & 0o7777 & ~_OTHERS)
    except OSError as error:
        logger.warning("Other users may read %s, and its permissions cannot be changed: %s.", file, error.strerror)
