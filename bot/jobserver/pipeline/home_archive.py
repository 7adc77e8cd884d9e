"""Packs the HOME of a job's programs, and unpacks it on another machine. Nothing in it is trusted. Both block."""

import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from bot.jobserver.errors import JobServerError
from bot.jobserver.repository.foreign_files import walk

LARGEST = 50_000_000
"""Bytes of all files, and ENTRY for each."""
ENTRY = 1_000


def pack(home: Path, target: Path, left_out: Collection[PurePosixPath] = ()) -> None:
    """Packs folders, files and links; links that lead out of `home` are left out, and none is followed.

    Raises:
        JobServerError: there is too much, or something cannot be read.
    """
    size = 0

    def counted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal size
        try:
            tarfile.data_filter(member, str(home))
        except tarfile.FilterError:
            return None
        size += ENTRY + member.size
        if size > LARGEST:
            raise JobServerError(f"it is larger than {LARGEST / 1e6:g} MB")
        return member

    try:
        with tarfile.open(target, "x:gz", compresslevel=1) as archive:
            for entry, path in walk(home):
                if path not in left_out:
                    archive.add(entry.path, str(path), recursive=False, filter=counted)
    except OSError as error:
        raise JobServerError(f"it cannot be packed: {error.strerror or error}") from error


def unpack(source: Path, home: Path) -> None:
    """Unpacks into an empty folder.

    Raises:
        JobServerError: it is no such archive, or something in it would be elsewhere, or more than a file or link.
    """
    try:
        with tarfile.open(source, "r:gz") as archive:
            archive.extractall(home, filter="data")
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise JobServerError(f"it cannot be unpacked: {error}") from error
