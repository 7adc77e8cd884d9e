"""A diff as the pull request page shows it: files, hunks, numbered lines and the words that changed in them."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

LINE_LIMIT = 4000
_FILE_LINE_LIMIT = 1500
_WORD_DIFF_LIMIT = 2000
_ALIKE = 0.4
_DECEPTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
Kind = Literal["added", "removed", "context"]


@dataclass(frozen=True)
class Piece:
    """A part of a line; `changed` marks what differs from the line it replaces or was replaced by."""

    text: str
    changed: bool = False


@dataclass(frozen=True)
class Line:
    """One line of a hunk, with its number before and after."""

    kind: Kind
    old_number: int | None
    new_number: int | None
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Section:
    """A hunk; `heading` is git's guess of what it stands in."""

    heading: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class File:
    """One changed file. `left_out` counts the lines that are too many to show."""

    path: str
    old_path: str | None
    change: Literal["added", "removed", "renamed", "changed"]
    is_binary: bool
    additions: int
    deletions: int
    sections: tuple[Section, ...]
    left_out: int = 0


@dataclass(frozen=True)
class Diff:
    """All changed files; `is_complete` is False where a part could not be shown."""

    files: tuple[File, ...]
    is_complete: bool

    @property
    def additions(self) -> int:
        return sum(file.additions for file in self.files)

    @property
    def deletions(self) -> int:
        return sum(file.deletions for file in self.files)


def parse_diff(text: str) -> Diff:
    """Read git's unified diff; what cannot be read (a cut-off end, say) is left out and told by `is_complete`."""
    parts = re.split(r"^(?=diff --git )", text, flags=re.MULTILINE)
    files: list[File] = []
    is_complete = True
    room = LINE_LIMIT
    for part in filter(None, parts):
        try:
            patches = PatchSet.from_string(part)
        except (UnidiffParseError, ValueError):
            is_complete = False
            continue
        for patch in patches:
            file = _file(patch, min(room, _FILE_LINE_LIMIT))
            room -= sum(len(section.lines) for section in file.sections)
            files.append(file)
    return Diff(tuple(files), is_complete and not any(file.left_out for file in files))


def _file(patch: PatchedFile, room: int) -> File:
    total = sum(len(hunk) for hunk in patch)
    sections: list[Section] = []
    shown = 0
    for hunk in patch:
        if shown + len(hunk) > room:
            break
        sections.append(_section(hunk))
        shown += len(hunk)
    return File(
        path=patch.path,
        old_path=_old_path(patch) if patch.is_rename else None,
        change=_change(patch),
        is_binary=patch.is_binary_file,
        additions=patch.added,
        deletions=patch.removed,
        sections=tuple(sections),
        left_out=total - shown,
    )


def _old_path(patch: PatchedFile) -> str:
    return str(patch.source_file).removeprefix("a/")


def _change(patch: PatchedFile) -> Literal["added", "removed", "renamed", "changed"]:
    if patch.is_added_file:
        return "added"
    if patch.is_removed_file:
        return "removed"
    return "renamed" if patch.is_rename else "changed"


def _section(hunk: Hunk) -> Section:
    lines: list[Line] = []
    raw = [line for line in hunk if line.line_type in "+- "]
    for is_context, run in groupby(raw, key=lambda line: line.line_type == " "):
        group = list(run)
        if is_context:
            lines += [
                Line("context", line.source_line_no, line.target_line_no, (Piece(_bare(line.value)),)) for line in group
            ]
            continue
        removed = [line for line in group if line.line_type == "-"]
        added = [line for line in group if line.line_type == "+"]
        before, after = pair_lines([_bare(line.value) for line in removed], [_bare(line.value) for line in added])
        lines += [Line("removed", line.source_line_no, None, p) for line, p in zip(removed, before, strict=True)]
        lines += [Line("added", None, line.target_line_no, p) for line, p in zip(added, after, strict=True)]
    return Section(hunk.section_header or "", tuple(lines))


def _bare(value: str) -> str:
    """A line without its end; signs that would hide or turn around what it says are spelt out."""
    line = value.removesuffix("\n").removesuffix("\r")
    return _DECEPTIVE.sub(lambda match: f"[U+{ord(match[0]):04X}]", line)


Pieces = tuple[Piece, ...]


def pair_lines(removed: list[str], added: list[str]) -> tuple[list[Pieces], list[Pieces]]:
    """Mark the changed words where as many lines were removed as added; otherwise lines are shown as they are."""
    if len(removed) != len(added):
        return [(Piece(line),) for line in removed], [(Piece(line),) for line in added]
    pairs = [compare_words(old, new) for old, new in zip(removed, added, strict=True)]
    return [old for old, _ in pairs], [new for _, new in pairs]


def compare_words(old: str, new: str) -> tuple[Pieces, Pieces]:
    """The two lines in pieces; each side's pieces join to its line. Lines that have little in common stay whole."""
    if len(old) + len(new) > _WORD_DIFF_LIMIT:
        return (Piece(old),), (Piece(new),)
    left, right = re.findall(r"\w+|\s+|[^\w\s]", old), re.findall(r"\w+|\s+|[^\w\s]", new)
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return (Piece(old),), (Piece(new),)
    codes = matcher.get_opcodes()
    return (
        _joined(Piece("".join(left[a:b]), tag != "equal") for tag, a, b, _, _ in codes),
        _joined(Piece("".join(right[a:b]), tag != "equal") for tag, _, _, a, b in codes),
    )


def _joined(pieces: Iterable[Piece]) -> Pieces:
    return tuple(piece for piece in pieces if piece.text) or (Piece(""),)
