"""Finds processes by a variable that they were started with, even if their parents are gone."""

import os
from collections.abc import Iterator
from pathlib import Path

MARK = "PAGEHAND_TEST_RUN"


def marked_processes(mark: str) -> list[str]:
    """Returns the command lines of those that are still running."""
    return [line for entry in Path("/proc").iterdir() if entry.name.isdigit() for line in _line_of(entry, mark)]


def _line_of(process: Path, mark: str) -> Iterator[str]:
    try:
        # A zombie has no environment.
        variables = (process / "environ").read_bytes().split(b"\0")
        if os.fsencode(f"{MARK}={mark}") in variables:
            yield (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return
