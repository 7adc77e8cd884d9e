"""Where tests write: in memory if possible, since they write a lot and need no disk."""

from pathlib import Path

_SHM = Path("/dev/shm")  # noqa: S108 - tests create directories of their own in it
IN_MEMORY = _SHM if _SHM.is_dir() else None
"""A directory for `tempfile`; None lets it choose."""
