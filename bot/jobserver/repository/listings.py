"""What git lists: the files of a tree, and those that differ between two trees."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

from bot.jobapi.models import ChangeKind

LARGEST_FILE = 5_000_000
LIST_TREE = ("ls-tree", "-r", "-l", "-z", "--full-tree")
"""What git is asked for a listing, before the tree."""
_KINDS = {"A": ChangeKind.ADDED, "D": ChangeKind.DELETED, "R": ChangeKind.RENAMED}
_SHORTSTAT = re.compile(r"(\d{1,18}) (file|insertion|deletion)")


class Snapshot(Protocol):
    """The files of a tree, by paths from the repository's root; links and nested repositories are excluded."""

    def paths(self) -> tuple[PurePosixPath, ...]:
        """Returns all files, sorted."""

    def may_hold(self, path: PurePosixPath) -> bool:
        """Tells whether a file of any size, a folder or a link has this name, or it is within a nested repository."""

    def read(self, path: PurePosixPath) -> bytes | None:
        """Returns a file's contents; None if there is none or it is larger than 5 MB."""

    def read_all(self, paths: Iterable[PurePosixPath]) -> Iterator[tuple[PurePosixPath, bytes]]:
        """Yields each of these files that `read` would return, using a single process.

        Raises:
            OSError: they cannot be read.
        """

    def write_files(self, folder: Path) -> None:
        """Writes all files into an empty folder, links as small text files.

        Raises:
            OSError: they cannot be written.
        """


def folders_of(paths: Iterable[PurePosixPath]) -> set[PurePosixPath]:
    """Returns all folders that contain these paths, including the root."""
    found = set[str]()
    for path in paths:
        folder = str(path).rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return set(map(PurePosixPath, found))


class GitFileMode(StrEnum):
    """What git keeps at a path."""

    ABSENT = "000000"
    REGULAR = "100644"
    EXECUTABLE = "100755"
    LINK = "120000"
    SUBMODULE = "160000"

    @property
    def is_file(self) -> bool:
        return self in {GitFileMode.REGULAR, GitFileMode.EXECUTABLE}


@dataclass(frozen=True)
class TreeEntry:
    """A tree's entry for a path. `size` is in bytes; None for a submodule or a missing object."""

    mode: str
    id: str
    size: int | None

    @property
    def is_readable(self) -> bool:
        """Tells whether it is a plain file of at most 5 MB."""
        return self.mode.startswith("100") and self.size is not None and self.size <= LARGEST_FILE


@dataclass(frozen=True)
class TreeListing:
    """All entries of a tree except folders; immutable, so it can be shared."""

    entries: Mapping[PurePosixPath, TreeEntry]

    @cached_property
    def blobs(self) -> dict[PurePosixPath, str]:
        return {path: entry.id for path, entry in self.entries.items()}

    @cached_property
    def folders(self) -> set[PurePosixPath]:
        """All folders, including the root."""
        return folders_of(self.entries)

    def of_mode(self, mode: GitFileMode) -> set[PurePosixPath]:
        """Returns the entries with this mode."""
        return {path for path, entry in self.entries.items() if entry.mode == mode}


def parse_listing(output: str) -> TreeListing:
    """Parses the output of `LIST_TREE`."""
    entries = {}
    for line in filter(None, output.split("\0")):
        facts, _, name = line.partition("\t")
        mode, _, blob, size = facts.split()
        entries[PurePosixPath(name)] = TreeEntry(mode, blob, int(size) if size.isdigit() else None)
    return TreeListing(entries)


@dataclass(frozen=True)
class FileVersion:
    """One side of a changed file; `id` is that of the blob, or of the commit of a submodule."""

    path: str
    mode: GitFileMode
    id: str


@dataclass(frozen=True)
class ChangedFile:
    """One changed file. `added` and `removed` are lines; None where git takes the file for binary."""

    kind: ChangeKind
    before: FileVersion
    after: FileVersion
    added: int | None
    removed: int | None

    @property
    def path(self) -> str:
        return self.after.path

    @property
    def is_binary(self) -> bool:
        return self.added is None

    @property
    def lines(self) -> int:
        """How many lines were added or removed."""
        return (self.added or 0) + (self.removed or 0)


@dataclass(frozen=True)
class PullRequestChange:
    """All changed files, in the order of their paths; of a great many only the first. How many there are, and how many
    lines were added and removed in those that are text, is always whole.
    """

    start: str
    end: str
    files: tuple[ChangedFile, ...]
    file_count: int
    added: int
    removed: int


def parse_files(output: str) -> tuple[ChangedFile, ...]:
    """Parses `git diff --raw --numstat -z`; if the output was cut off, the complete entries."""
    fields = iter(output.split("\0")[:-1])
    counts: list[tuple[int | None, int | None]] = []
    versions: list[tuple[ChangeKind, FileVersion, FileVersion]] = []
    for field in fields:
        if field.startswith(":"):
            versions += _versions(field, fields)
        else:
            counts += _counts(field, fields)
    return tuple(ChangedFile(*version, *count) for version, count in zip(versions, counts, strict=False))


def _versions(record: str, fields: Iterator[str]) -> Iterator[tuple[ChangeKind, FileVersion, FileVersion]]:
    old_mode, new_mode, old_id, new_id, status = record[1:].split(" ")
    old_path = next(fields, None)
    new_path = next(fields, None) if status[0] in "RC" else old_path
    if old_path is not None and new_path is not None:
        yield (
            _KINDS.get(status[0], ChangeKind.CHANGED),
            FileVersion(old_path, GitFileMode(old_mode), old_id),
            FileVersion(new_path, GitFileMode(new_mode), new_id),
        )


def _counts(record: str, fields: Iterator[str]) -> Iterator[tuple[int | None, int | None]]:
    added, removed, path = record.split("\t", 2)
    if not path:  # a rename: its two names follow
        next(fields, None), next(fields, None)
    yield (None, None) if added == "-" else (int(added), int(removed))


def parse_totals(shortstat: str) -> tuple[int, int, int]:
    """Reads `git diff --shortstat`: files changed, lines added and removed."""
    found = {word: int(number) for number, word in _SHORTSTAT.findall(shortstat)}
    return found.get("file", 0), found.get("insertion", 0), found.get("deletion", 0)
