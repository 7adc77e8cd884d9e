"""Holds out changes that the job may not make, and others that depend on them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.jobserver.repository.allowed_paths import AllowedPaths

_LISTED_OF_A_FOLDER = 3
_NOT_ALLOWED = "may not be changed here (PATHS)"
_MOVED = "stays, since where it was moved to may not be changed here (PATHS)"
_IN_THE_WAY = "is in the place of something that may not be changed here (PATHS)"
_EXECUTABLE = 0o111


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


def held_out(
    refused: Collection[PurePosixPath],
    changed: Collection[PurePosixPath],
    blobs: Mapping[PurePosixPath, str],
    hashes: Mapping[PurePosixPath, str],
) -> HeldOut:
    """Returns the refused paths, and those that have to stay unchanged with them.

    A file that was moved to a refused path stays where it was, and nothing replaces a refused path. `blobs` are the
    blobs of all files before the change; `hashes` are those of refused new files.
    """
    reasons = dict.fromkeys(refused, _NOT_ALLOWED)
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
        if mode & _EXECUTABLE and not _begins_as_program(file):
            file.chmod(mode & ~_EXECUTABLE)


def _is_allowed(path: PurePosixPath, file: Path, allowed: AllowedPaths, *, is_new: bool) -> bool:
    if not allowed.allows(path):
        return False
    return not (is_new and _begins_as_program(file)) or allowed.allows(path, is_program=True)


def _begins_as_program(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(2) == b"#!"
    except OSError:
        return False


def _lines(folder: PurePosixPath, paths: list[PurePosixPath], reason: str) -> Iterator[str]:
    if len(paths) > _LISTED_OF_A_FOLDER:
        yield f"{len(paths):,} files in `{folder}`: each {reason}"
    else:
        yield from (f"`{path}` {reason}" for path in paths)
