"""Reads what `git diff-tree --raw --numstat -z` says of a change (git's documentation, "Raw output format")."""

from collections.abc import Iterator
from itertools import islice

from bot.jobserver.models import ChangeKind, Changes, FileChange

_LISTED_AT_MOST = 300
"""Files that are listed; all are counted."""
_KINDS = {"A": ChangeKind.ADDED, "D": ChangeKind.DELETED, "R": ChangeKind.RENAMED, "C": ChangeKind.ADDED}
_TWO_PATHS = "RC"


def parse_changes(output: str) -> Changes:
    """Returns the files with their numbers of lines."""
    fields = iter(output.split("\0"))
    kinds: dict[str, ChangeKind] = {}
    files: list[FileChange] = []
    for field in fields:
        if field.startswith(":"):
            letter = field.rsplit(" ", 1)[-1][:1]
            kinds[_path(fields, has_two=letter in _TWO_PATHS)] = _KINDS.get(letter, ChangeKind.CHANGED)
        elif field:
            added, removed, path = field.split("\t", 2)
            path = path or _path(fields, has_two=True)
            files.append(FileChange(path=path, kind=kinds[path], added=_lines(added), removed=_lines(removed)))
    return Changes(
        files=tuple(files[:_LISTED_AT_MOST]),
        file_count=len(files),
        added=sum(file.added or 0 for file in files),
        removed=sum(file.removed or 0 for file in files),
    )


def _path(fields: Iterator[str], *, has_two: bool) -> str:
    """Returns the path that follows; of a rename's two paths the new one."""
    *_, path = islice(fields, 2 if has_two else 1)
    return path


def _lines(number: str) -> int | None:
    return None if number == "-" else int(number)
