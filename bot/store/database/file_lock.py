"""Only one process at a time works on a SQLite database. The kernel releases the lock when the process ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bot.errors import StoreUnavailable


@contextmanager
def hold_file(path: str | None) -> Iterator[None]:
    """Holds a lock beside a SQLite database's file; does nothing without one (PostgreSQL serves several processes).

    Raises:
        StoreUnavailable: Another process holds it.
    """
    if path is None:
        yield
        return
    descriptor = _opened(Path(f"{path}.lock"))
    try:
        if descriptor is not None:
            _lock(descriptor, path)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _opened(lock: Path) -> int | None:
    """Opens the lock's file. If that cannot be made, neither can the database's, whose error says more."""
    with suppress(OSError):
        return os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    return None


def _lock(descriptor: int, path: str) -> None:
    import fcntl  # noqa: PLC0415 - missing on Windows, where the commands must still be able to say so

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        process = f" (process {holder})" if holder.isdigit() else ""
        raise StoreUnavailable(
            f"another process of Pagehand{process} is using {path}, and a SQLite database serves one. Stop that one "
            "first; for several, set DATABASE_URL to a PostgreSQL database."
        ) from None
    except OSError:
        return  # a file system without locks
    with suppress(OSError):  # a full disk: the lock is held all the same, and the database's own error says more
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
