"""A file's diff as the page shows it: hunks, numbered lines and changed words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from rapidfuzz.distance import Indel
from rapidfuzz.distance._initialize import Opcodes

from bot.runtime.text import MISLEADING

PAIR_LIMIT = 10_000
"""The most characters of two lines to compare; longer ones are shown without marks."""
PAGE_LIMIT = 400_000
"""The most characters to compare on a page; lines after that are shown without marks."""
_MOST_SPANS = 200
_MIN_SIMILARITY = 0.4
LONGEST_LINE = 5000
"""How many characters of a line are shown."""
_DECEPTIVE = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f]|{MISLEADING.pattern}")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@ ?(.*)")
LineKind = Literal["added", "removed", "context"]
_KINDS: dict[str, LineKind] = {"+": "added", "-": "removed", " ": "context"}


@dataclass(frozen=True)
class LinePart:
    """A part of a line; `changed` if it differs from the line that replaced it or that it replaces."""

    text: str
    changed: bool = False


Spans = tuple[LinePart, ...]


class WordMarker:
    """Marks the changed words of one page within a budget. `room` is the rest of it, in characters."""

    def __init__(self, room: int = PAGE_LIMIT) -> None:
        self.room = room

    def mark(self, removed: Sequence[str], added: Sequence[str]) -> tuple[list[Spans], list[Spans]]:
        """Marks lines if as many were removed as added; otherwise leaves them unmarked."""
        if len(removed) != len(added):
            return [whole(line) for line in removed], [whole(line) for line in added]
        pairs = [self._compare(old, new) for old, new in zip(removed, added, strict=True)]
        return [old for old, _ in pairs], [new for _, new in pairs]

    def _compare(self, old: str, new: str) -> tuple[Spans, Spans]:
        length = len(old) + len(new)
        if length > min(PAIR_LIMIT, self.room):
            return whole(old), whole(new)
        self.room -= length
        return compare_words(old, new)


def whole(line: str) -> Spans:
    return (LinePart(line),)


def compare_words(old: str, new: str) -> tuple[Spans, Spans]:
    """Splits both lines into spans. Lines that have little in common stay whole."""
    left, right = _words(old), _words(new)
    # Implemented in C++: the longest pair takes 10 ms at worst.
    codes = Indel.opcodes(left, right)
    if len(codes) > _MOST_SPANS or _similarity(codes, len(left) + len(right)) < _MIN_SIMILARITY:
        return whole(old), whole(new)
    return (
        _joined(LinePart("".join(left[code.src_start : code.src_end]), code.tag != "equal") for code in codes),
        _joined(LinePart("".join(right[code.dest_start : code.dest_end]), code.tag != "equal") for code in codes),
    )


def _words(line: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", line)


def _similarity(codes: Opcodes, total: int) -> float:
    equal = sum(code.src_end - code.src_start for code in codes if code.tag == "equal")
    return 2 * equal / total if total else 1.0


def _joined(spans: Iterable[LinePart]) -> Spans:
    return tuple(span for span in spans if span.text) or (LinePart(""),)


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
    """Lines that changed together; `heading` is git's guess of the section that they are in."""

    heading: str
    lines: tuple[DiffLine, ...]


def parse_patch(patch: str) -> tuple[Hunk, ...]:
    """Reads git's unified diff of one file, even if it is cut off at the end of a line. No words are marked yet."""
    parts = re.split(r"^(?=@@ |diff --git )", patch, flags=re.MULTILINE)
    found = ((_HUNK.match(part), part) for part in parts)
    return tuple(
        Hunk(visible_line(match[3]), tuple(_numbered(part.split("\n")[1:], int(match[1]), int(match[2]))))
        for match, part in found
        if match
    )


def _numbered(lines: Sequence[str], old: int, new: int) -> Iterator[DiffLine]:
    for line in lines:
        kind = _KINDS.get(line[:1])
        if kind is None:  # "\ No newline at end of file"
            continue
        spans, hidden = whole(visible_line(line[1 : LONGEST_LINE + 1])), max(0, len(line) - 1 - LONGEST_LINE)
        yield DiffLine(kind, None if kind == "added" else old, None if kind == "removed" else new, spans, hidden)
        old += kind != "added"
        new += kind != "removed"


def first_lines(hunks: Sequence[Hunk], room: int) -> tuple[Hunk, ...]:
    """Returns the first `room` lines."""
    kept: list[Hunk] = []
    for hunk in hunks:
        if room <= 0:
            break
        kept.append(Hunk(hunk.heading, hunk.lines[:room]))
        room -= len(hunk.lines)
    return tuple(kept)


def with_marked_words(hunk: Hunk, words: WordMarker) -> Hunk:
    """Returns a hunk in which each run of changes has its removed lines first and its changed words marked."""
    lines: list[DiffLine] = []
    for is_context, run in groupby(hunk.lines, key=lambda line: line.kind == "context"):
        group = list(run)
        lines += group if is_context else _marked(group, words)
    return Hunk(hunk.heading, tuple(lines))


def _marked(changes: list[DiffLine], words: WordMarker) -> Iterator[DiffLine]:
    removed = [line for line in changes if line.kind == "removed"]
    added = [line for line in changes if line.kind == "added"]
    before, after = words.mark([line.spans[0].text for line in removed], [line.spans[0].text for line in added])
    for line, spans in zip(removed + added, before + after, strict=True):
        yield replace(line, spans=spans)


def visible_line(value: str) -> str:
    """Returns a line without its end, and otherwise as `visible` does."""
    return visible(value.removesuffix("\n").removesuffix("\r"))


def visible(text: str) -> str:
    """Returns a text in which characters that would hide or reverse its contents are written as their code points."""
    return _DECEPTIVE.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)
