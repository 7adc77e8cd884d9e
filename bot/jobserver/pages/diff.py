"""A diff as the pull request page shows it: files, hunks, numbered lines and the words that changed in them."""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from unidiff import patch as unidiff
from unidiff.errors import UnidiffParseError

from bot.runtime.misleading_characters import MISLEADING

LINE_LIMIT = 4000
_FILE_LINE_LIMIT = 1500
_WORD_DIFF_LIMIT = 2000
_MIN_SIMILARITY = 0.4
_DECEPTIVE = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f]|{MISLEADING.pattern}")
LineKind = Literal["added", "removed", "context"]
FileChange = Literal["added", "removed", "renamed", "changed"]


@dataclass(frozen=True)
class Span:
    """A part of a line; `changed` marks what differs from the line it replaces or was replaced by."""

    text: str
    changed: bool = False


@dataclass(frozen=True)
class DiffLine:
    """One line of a hunk, with its number before and after."""

    kind: LineKind
    old_number: int | None
    new_number: int | None
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Hunk:
    """Lines that changed together; `heading` is git's guess of what they stand in."""

    heading: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True)
class FileDiff:
    """One changed file. `hidden_lines` is how many are not shown, as there are too many."""

    path: str
    old_path: str | None
    change: FileChange
    is_binary: bool
    additions: int
    deletions: int
    hunks: tuple[Hunk, ...]
    hidden_lines: int = 0


@dataclass(frozen=True)
class Diff:
    """All changed files; `is_complete` is False where a part could not be shown."""

    files: tuple[FileDiff, ...]
    is_complete: bool

    @property
    def additions(self) -> int:
        return sum(file.additions for file in self.files)

    @property
    def deletions(self) -> int:
        return sum(file.deletions for file in self.files)


def parse_diff(text: str) -> Diff:
    """Reads git's unified diff; what cannot be read (a cut-off end, say) is left out and told by `is_complete`."""
    parts = re.split(r"^(?=diff --git )", text, flags=re.MULTILINE)
    files: list[FileDiff] = []
    is_complete = True
    room = LINE_LIMIT
    for part in filter(None, parts):
        try:
            patches = unidiff.PatchSet.from_string(part)
        except (UnidiffParseError, ValueError):
            is_complete = False
            continue
        for patch in patches:
            file = _file(patch, min(room, _FILE_LINE_LIMIT))
            room -= sum(len(hunk.lines) for hunk in file.hunks)
            files.append(file)
    return Diff(tuple(files), is_complete and not any(file.hidden_lines for file in files))


def _file(patch: unidiff.PatchedFile, room: int) -> FileDiff:
    shown = _hunks_that_fit(patch, room)
    return FileDiff(
        path=patch.path,
        old_path=_old_path(patch) if patch.is_rename else None,
        change=_change(patch),
        is_binary=patch.is_binary_file,
        additions=patch.added,
        deletions=patch.removed,
        hunks=tuple(_hunk(hunk) for hunk in shown),
        hidden_lines=sum(map(len, patch)) - sum(map(len, shown)),
    )


def _hunks_that_fit(patch: unidiff.PatchedFile, room: int) -> list[unidiff.Hunk]:
    """Returns the first hunks, whole ones, of together at most `room` lines."""
    fitting: list[unidiff.Hunk] = []
    for hunk in patch:
        room -= len(hunk)
        if room < 0:
            break
        fitting.append(hunk)
    return fitting


def _old_path(patch: unidiff.PatchedFile) -> str:
    return str(patch.source_file).removeprefix("a/")


def _change(patch: unidiff.PatchedFile) -> FileChange:
    if patch.is_added_file:
        return "added"
    if patch.is_removed_file:
        return "removed"
    return "renamed" if patch.is_rename else "changed"


def _hunk(hunk: unidiff.Hunk) -> Hunk:
    lines: list[DiffLine] = []
    raw = [line for line in hunk if line.line_type in "+- "]
    for is_context, run in groupby(raw, key=lambda line: line.line_type == " "):
        group = list(run)
        lines += map(_context, group) if is_context else _changes(group)
    return Hunk(hunk.section_header or "", tuple(lines))


def _context(line: unidiff.Line) -> DiffLine:
    return DiffLine("context", line.source_line_no, line.target_line_no, (Span(visible_line(line.value)),))


def _changes(group: list[unidiff.Line]) -> Iterator[DiffLine]:
    removed = [line for line in group if line.line_type == "-"]
    added = [line for line in group if line.line_type == "+"]
    before, after = mark_changed_words(
        [visible_line(line.value) for line in removed], [visible_line(line.value) for line in added]
    )
    for line, spans in zip(removed, before, strict=True):
        yield DiffLine("removed", line.source_line_no, None, spans)
    for line, spans in zip(added, after, strict=True):
        yield DiffLine("added", None, line.target_line_no, spans)


def visible_line(value: str) -> str:
    """Returns a line without its end; signs that would hide or turn around what it says are spelt out."""
    line = value.removesuffix("\n").removesuffix("\r")
    return _DECEPTIVE.sub(lambda match: f"[U+{ord(match[0]):04X}]", line)


Spans = tuple[Span, ...]


def mark_changed_words(removed: list[str], added: list[str]) -> tuple[list[Spans], list[Spans]]:
    """Marks the changed words where as many lines were removed as added; otherwise lines are shown as they are."""
    if len(removed) != len(added):
        return [(Span(line),) for line in removed], [(Span(line),) for line in added]
    pairs = [compare_words(old, new) for old, new in zip(removed, added, strict=True)]
    return [old for old, _ in pairs], [new for _, new in pairs]


def compare_words(old: str, new: str) -> tuple[Spans, Spans]:
    """Returns both lines in spans that join to them again. Lines that have little in common stay whole."""
    if len(old) + len(new) > _WORD_DIFF_LIMIT:
        return (Span(old),), (Span(new),)
    left, right = re.findall(r"\w+|\s+|[^\w\s]", old), re.findall(r"\w+|\s+|[^\w\s]", new)
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < _MIN_SIMILARITY:
        return (Span(old),), (Span(new),)
    codes = matcher.get_opcodes()
    return (
        _joined(Span("".join(left[a:b]), tag != "equal") for tag, a, b, _, _ in codes),
        _joined(Span("".join(right[a:b]), tag != "equal") for tag, _, _, a, b in codes),
    )


def _joined(spans: Iterable[Span]) -> Spans:
    return tuple(span for span in spans if span.text) or (Span(""),)
