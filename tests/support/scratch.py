"""Where tests write: in memory where that is possible, since they write much and need no disk."""

from pathlib import Path

_SHM = Path("/dev/shm")  # noqa: S108 - directories of one's own are made in it
IN_MEMORY = _SHM if _SHM.is_dir() else None
"""For `tempfile`: None is its own choice."""
