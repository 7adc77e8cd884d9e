"""Which words of a line changed. What is compared is bounded: a line, and a page, cost little whatever they hold."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Indel
from rapidfuzz.distance._initialize import Opcodes

PAIR_LIMIT = 10_000
"""Characters of two lines; longer ones are shown whole."""
PAGE_LIMIT = 400_000
"""Characters of all compared lines of a page; those after it are shown whole."""
_MOST_SPANS = 200
_MIN_SIMILARITY = 0.4


@dataclass(frozen=True)
class Span:
    """A part of a line; `changed` marks what differs from the line it replaces or was replaced by."""

    text: str
    changed: bool = False


Spans = tuple[Span, ...]


class WordMarker:
    """Marks the changed words of one page, as long as its budget lasts. `room` is what is left of it, in characters."""

    def __init__(self, room: int = PAGE_LIMIT) -> None:
        self.room = room

    def mark(self, removed: Sequence[str], added: Sequence[str]) -> tuple[list[Spans], list[Spans]]:
        """Marks where as many lines were removed as added; otherwise lines are shown as they are."""
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
    return (Span(line),)


def compare_words(old: str, new: str) -> tuple[Spans, Spans]:
    """Returns both lines in spans that join to them again. Lines that have little in common stay whole."""
    left, right = _words(old), _words(new)
    # In C++, a machine word of tokens at a time: the longest pair takes 10 ms at worst.
    codes = Indel.opcodes(left, right)
    if len(codes) > _MOST_SPANS or _similarity(codes, len(left) + len(right)) < _MIN_SIMILARITY:
        return whole(old), whole(new)
    return (
        _joined(Span("".join(left[code.src_start : code.src_end]), code.tag != "equal") for code in codes),
        _joined(Span("".join(right[code.dest_start : code.dest_end]), code.tag != "equal") for code in codes),
    )


def _words(line: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", line)


def _similarity(codes: Opcodes, total: int) -> float:
    equal = sum(code.src_end - code.src_start for code in codes if code.tag == "equal")
    return 2 * equal / total if total else 1.0


def _joined(spans: Iterable[Span]) -> Spans:
    return tuple(span for span in spans if span.text) or (Span(""),)
