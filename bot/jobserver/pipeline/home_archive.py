"""Packs the HOME of a job's programs, and unpacks it on another machine. Nothing in it is trusted. Both block."""

import os
import stat
import tarfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from bot.jobserver.errors import JobServerError
from bot.jobserver.repository.foreign_files import walk

LARGEST = 50_000_000
"""Bytes of all files, and ENTRY for each."""
ENTRY = 1_000
_FILES = (tarfile.REGTYPE, tarfile.LNKTYPE)
_FILE_MODE = stat.S_IRUSR | stat.S_IWUSR


def pack(home: Path, target: Path, left_out: Collection[PurePosixPath] = ()) -> None:
    """Packs folders, files and links; links that lead out of `home` are left out, and none is followed.

    Raises:
        JobServerError: there is too much, or something cannot be read.
    """
    size = 0

    def counted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal size
        if not _stays(member):
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
    seen = dict[PurePosixPath, bytes]()
    try:
        with tarfile.open(source, "r:gz") as archive:
            # What Python's own filters do is done here: Debian 12's has none (they came with 3.11.4).
            archive.extraction_filter = lambda member, _: member
            for member in archive:
                _require_inside(member, seen)
                seen[PurePosixPath(member.name)] = member.type
                member.mode = stat.S_IRWXU if member.isdir() or member.mode & stat.S_IXUSR else _FILE_MODE
                archive.extract(member, home)
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise JobServerError(f"it cannot be unpacked: {error}") from error


def _require_inside(member: tarfile.TarInfo, seen: Mapping[PurePosixPath, bytes]) -> None:
    """Raises TarError for what would not be in the home, or is something again, if these were there before it."""
    place = PurePosixPath(member.name)
    is_through_link = any(seen.get(parent) == tarfile.SYMTYPE for parent in place.parents)
    is_of_file = not member.islnk() or seen.get(PurePosixPath(member.linkname)) in _FILES
    if place in seen or is_through_link or not (is_of_file and _stays(member)):
        raise tarfile.TarError("something in it would be elsewhere")


def _stays(member: tarfile.TarInfo) -> bool:
    """Returns whether it is a folder, a file or a link whose name and target are in the home."""
    place = PurePosixPath(member.name)
    target = place.parent / member.linkname if member.issym() else PurePosixPath(member.linkname)
    leads_out = target.is_absolute() or PurePosixPath(os.path.normpath(target)).parts[:1] == ("..",)
    is_kind = member.isreg() or member.isdir() or member.issym() or member.islnk()
    return is_kind and not (place.is_absolute() or ".." in place.parts or leads_out)
