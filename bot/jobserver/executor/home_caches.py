"""What a HOME holds only to save time: dropped after each instruction, since it would be kept once for each job."""

import stat
from collections.abc import Iterable
from pathlib import Path

from bot.jobserver.repository.removal import remove

ANY_PROGRAMS = (
    ".cache", ".npm/_cacache", ".npm/_logs", ".npm/_npx", ".bun/install/cache", ".cargo/registry", ".local/share/Trash",
    ".local/share/pnpm/store", ".yarn/berry/cache", "go/pkg",
)  # fmt: skip
"""Paths in HOME."""


def drop_caches(home: Path, caches: Iterable[str] = ()) -> None:
    """Removes these folders and those of any program, once nothing runs that could change HOME meanwhile.

    A link is removed itself, and nothing is looked for behind it.
    """
    for cache in (*ANY_PROGRAMS, *caches):
        if _is_within(home, Path(cache)):
            remove(home / cache)


def _is_within(home: Path, path: Path) -> bool:
    """Whether all that a path leads through are folders of this HOME."""
    try:
        return all(stat.S_ISDIR((home / folder).lstat().st_mode) for folder in path.parents)
    except OSError:
        return False
