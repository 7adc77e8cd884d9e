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
    try:
        with tarfile.open(target, "x:gz", compresslevel=1) as archive:
            for entry, path in walk(home):
                member = None if path in left_out else archive.gettarinfo(entry.path, str(path))
                if member is None or not _stays(member, home):
                    continue
                size += ENTRY + member.size
                if size > LARGEST:
                    raise JobServerError(f"it is larger than {LARGEST / 1e6:g} MB")
                _add(archive, member, entry.path)
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


def _stays(member: tarfile.TarInfo, home: Path) -> bool:
    try:
        tarfile.data_filter(member, str(home))
    except tarfile.FilterError:
        return False
    return True


def _add(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    if member.isreg():
        with open(path, "rb") as stream:  # noqa: PTH123 - a path as it was found
            archive.addfile(member, stream)
    else:
        archive.addfile(member)
