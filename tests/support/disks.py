"""Separate disks, in memory, that can be filled or made read-only."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def a_disk(disk: Path, size: str) -> Iterator[Path]:
    """A disk of `size` at a directory that does not exist yet. Skips the test where this user may not mount one."""
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("left out: this user may not mount a disk")
    try:
        yield disk
    finally:
        # Lazily, since any other program may be looking at the disk at this moment, as monitoring does.
        subprocess.run(["umount", "--lazy", disk], check=True)


def make_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


def fill(filler: Path) -> None:
    """Writes until the disk is full."""
    with filler.open("wb", buffering=0) as file:
        for size in (65_536, 4_096, 512, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
