"""Holds out changes that the job may not make, and others that depend on them."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.jobserver.repository.allowed_paths import AllowedPaths

_LISTED_OF_A_FOLDER = 3
NOT_ALLOWED = "may not be changed here (PATHS)"
_MOVED = "stays, since where it was moved to may not be changed here (PATHS)"
_IN_THE_WAY = "is in the place of something that may not be changed here (PATHS)"
PACKED = "is a packed file, in which keys cannot be searched for: commit it yourself"
_EXECUTABLE = 0o111
_BEGINNING = 262
_BEGINS_PACKED = re.compile(
    rb"PK(?:\x03\x04|\x05\x06|\x07\x08)|\x1f[\x8b\x9d\xa0]|BZh[1-9](?:1AY&SY|\x17rE8P\x90)|\xfd7zXZ\x00|\]\x00\x00|LZIP\x01"
    rb"|\x28\xb5\x2f\xfd|\x04\x22M\x18|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|MSCF\x00|!<arch>\n|.{257}ustar",
    re.DOTALL,
)
"""zip (also docx, epub, jar), compress, gzip, bzip2, xz, lzma, lzip, zstd, lz4, 7z, rar, cab, deb, tar."""


@dataclass(frozen=True)
class HeldOut:
    """The paths that are held out, each with the reason."""

    reasons: Mapping[PurePosixPath, str]

    def in_words(self) -> list[str]:
        """Returns a line for each; if there are many in a folder, one line for the folder."""
        together: dict[tuple[PurePosixPath, str], list[PurePosixPath]] = {}
        for path, reason in self.reasons.items():
            together.setdefault((path.parent, reason), []).append(path)
        return [line for (folder, reason), paths in together.items() for line in _lines(folder, paths, reason)]


def not_allowed(
    changed: Collection[PurePosixPath], before: Collection[PurePosixPath], copy: Path, allowed: AllowedPaths
) -> list[PurePosixPath]:
    """Returns the paths that the patterns do not allow. Blocks while it reads the start of new files."""
    return [path for path in changed if not _is_allowed(path, copy / path, allowed, is_new=path not in before)]


def packed(changed: Collection[PurePosixPath], copy: Path) -> list[PurePosixPath]:
    """Returns the paths whose files are packed, by their first bytes. Blocks."""
    return [path for path in changed if _BEGINS_PACKED.match(_beginning(copy / path, _BEGINNING))]


def held_out(
    refused: Mapping[PurePosixPath, str],
    changed: Collection[PurePosixPath],
    blobs: Mapping[PurePosixPath, str],
    hashes: Mapping[PurePosixPath, str],
) -> HeldOut:
    """Returns the refused paths with their reasons, and those that have to stay unchanged with them.

    A file that was moved to a refused path stays where it was, and nothing replaces a refused path. `blobs` are the
    blobs of all files before the change; `hashes` are those of refused new files.
    """
    reasons = dict(refused)
    moved, refused_before = set(hashes.values()), {path for path in refused if path in blobs}
    folders = {folder for path in refused_before for folder in path.parents}
    for path in changed:
        if path in reasons:
            continue
        if blobs.get(path) in moved:
            reasons[path] = _MOVED
        elif path in folders or not refused_before.isdisjoint(path.parents):
            reasons[path] = _IN_THE_WAY
    return HeldOut(reasons)


def settle_modes(taken: Collection[PurePosixPath], executable: Collection[PurePosixPath], copy: Path) -> None:
    """Removes the executable bit from files that are not programs and were not executable before. Blocks."""
    for path in taken:
        file = copy / path
        if path in executable or not file.is_file():
            continue
        mode = file.stat().st_mode
        if mode & _EXECUTABLE and _beginning(file, 2) != b"#!":
            file.chmod(mode & ~_EXECUTABLE)


def _is_allowed(path: PurePosixPath, file: Path, allowed: AllowedPaths, *, is_new: bool) -> bool:
    if not allowed.allows(path):
        return False
    return not (is_new and _beginning(file, 2) == b"#!") or allowed.allows(path, is_program=True)


def _beginning(file: Path, length: int) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(length)
    except OSError:
        return b""


def _lines(folder: PurePosixPath, paths: list[PurePosixPath], reason: str) -> Iterator[str]:
    if len(paths) > _LISTED_OF_A_FOLDER:
        yield f"{len(paths):,} files in `{folder}`: each {reason}"
    else:
        yield from (f"`{path}` {reason}" for path in paths)
