"""The changed files of a pull request, with git's numbers for each and for all."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from bot.jobapi.models import ChangeKind

_KINDS = {"A": ChangeKind.ADDED, "D": ChangeKind.DELETED, "R": ChangeKind.RENAMED}
_SHORTSTAT = re.compile(r"(\d{1,18}) (file|insertion|deletion)")


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
class Totals:
    """Files changed, and lines added and removed in those that are text."""

    files: int = 0
    added: int = 0
    removed: int = 0


@dataclass(frozen=True)
class PullRequestChange:
    """All changed files, in the order of their paths; of a great many only the first. The totals are always whole."""

    start: str
    end: str
    files: tuple[ChangedFile, ...]
    totals: Totals


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


def parse_totals(shortstat: str) -> Totals:
    """Reads `git diff --shortstat`."""
    found = {word: int(number) for number, word in _SHORTSTAT.findall(shortstat)}
    return Totals(found.get("file", 0), found.get("insertion", 0), found.get("deletion", 0))
