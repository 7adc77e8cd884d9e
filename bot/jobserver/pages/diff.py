"""A file's difference as the page shows it: hunks, numbered lines and the words that changed in them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from bot.jobserver.pages.word_marks import Span, Spans, WordMarker, whole
from bot.runtime.text import MISLEADING

LONGEST_LINE = 5000
"""Characters of a line that are shown."""
_DECEPTIVE = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f]|{MISLEADING.pattern}")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@ ?(.*)")
LineKind = Literal["added", "removed", "context"]
_KINDS: dict[str, LineKind] = {"+": "added", "-": "removed", " ": "context"}


@dataclass(frozen=True)
class DiffLine:
    """One line of a hunk, with its number before and after. `hidden` characters at its end are not shown."""

    kind: LineKind
    old_number: int | None
    new_number: int | None
    spans: Spans
    hidden: int = 0


@dataclass(frozen=True)
class Hunk:
    """Lines that changed together; `heading` is git's guess of what they stand in."""

    heading: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True)
class RawLine:
    """A line as git has it, before its words are compared."""

    kind: LineKind
    old_number: int | None
    new_number: int | None
    text: str


@dataclass(frozen=True)
class RawHunk:
    heading: str
    lines: tuple[RawLine, ...]


def parse_patch(patch: str) -> tuple[RawHunk, ...]:
    """Reads git's unified diff of one file, also where it is cut off at the end of a line."""
    parts = re.split(r"^(?=@@ |diff --git )", patch, flags=re.MULTILINE)
    found = ((_HUNK.match(part), part) for part in parts)
    return tuple(
        RawHunk(visible_line(match[3]), tuple(_numbered(part.split("\n")[1:], int(match[1]), int(match[2]))))
        for match, part in found
        if match
    )


def _numbered(lines: Sequence[str], old: int, new: int) -> Iterator[RawLine]:
    for line in lines:
        kind = _KINDS.get(line[:1])
        if kind is None:  # "\ No newline at end of file"
            continue
        yield RawLine(kind, None if kind == "added" else old, None if kind == "removed" else new, line[1:])
        old += kind != "added"
        new += kind != "removed"


def first_lines(hunks: Sequence[RawHunk], room: int) -> tuple[RawHunk, ...]:
    """Returns the first `room` lines."""
    kept: list[RawHunk] = []
    for hunk in hunks:
        if room <= 0:
            break
        kept.append(RawHunk(hunk.heading, hunk.lines[:room]))
        room -= len(hunk.lines)
    return tuple(kept)


def shown_hunk(hunk: RawHunk, words: WordMarker) -> Hunk:
    lines: list[DiffLine] = []
    for is_context, run in groupby(hunk.lines, key=lambda line: line.kind == "context"):
        group = list(run)
        lines += [_shown(line, whole(_text(line))) for line in group] if is_context else _changes(group, words)
    return Hunk(hunk.heading, tuple(lines))


def _changes(group: list[RawLine], words: WordMarker) -> Iterator[DiffLine]:
    removed = [line for line in group if line.kind == "removed"]
    added = [line for line in group if line.kind == "added"]
    before, after = words.mark([_text(line) for line in removed], [_text(line) for line in added])
    for line, spans in zip(removed + added, before + after, strict=True):
        yield _shown(line, spans)


def _shown(line: RawLine, spans: Spans) -> DiffLine:
    return DiffLine(line.kind, line.old_number, line.new_number, spans, max(0, len(line.text) - LONGEST_LINE))


def _text(line: RawLine) -> str:
    return visible_line(line.text[:LONGEST_LINE])


def visible_line(value: str) -> str:
    """Returns a line without its end; signs that would hide or turn around what it says are spelt out."""
    line = value.removesuffix("\n").removesuffix("\r")
    return visible(line)


def visible(text: str) -> str:
    """Returns a text in which signs that would hide or turn around what it says are spelt out."""
    return _DECEPTIVE.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


__all__ = ["DiffLine", "Hunk", "RawHunk", "RawLine", "Span", "first_lines", "parse_patch", "shown_hunk", "visible"]
