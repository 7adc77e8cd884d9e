"""Replaces words in a page's prose, and addresses that the prompt names in full."""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from bot.jobserver.documents.page import ParsedPage, Region, RegionKind, Span
from bot.jobserver.documents.words import NameKind, ProseWord, words_in
from bot.jobserver.editors.builtin.files import WorkingFiles

_JOINTS = frozenset("-\u2010\u2011'\u2019\u00ad\u200c\u200d\u2060*_~")
"""Hyphens, apostrophes, invisible characters and emphasis marks, after which a word continues."""
_LONGEST_JOINT = 6
_DASH = "--"
_POSSESSIVE = re.compile(r"['\u2019]s(?!\w)")
_CONTRACTED = frozenset(
    ("he", "here", "how", "it", "let", "she", "that", "there", "what", "when", "where", "who", "why")
)
"""Words whose `'s` is a verb, not a possessive."""
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese, which have no spaces between words."""
NAMES, OTHER_WORDS, LINKED_HEADINGS = "names", "other words", "headings that links point to"
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]+")
_GOES_ON = re.compile(r"[\w-]|\.\w")
_LINE = re.compile(r"[^\r\n]+")
_ANCHOR = re.compile(r"#([\w%.:-]{1,300}+)")


def is_whole(text: str, span: Span) -> bool:
    """Tells whether a span cuts no word in two, as "install" would cut "installed" and "re-install".

    An end that is not a letter cuts no word.
    """
    return not (_is_cut_before(text, span.start) or _is_cut_after(text, span))


def _is_cut_before(text: str, start: int) -> bool:
    return _is_letter(text[start : start + 1]) and _continues(text, start - 1, step=-1)


def _is_cut_after(text: str, span: Span) -> bool:
    if not _is_letter(text[span.end - 1 : span.end]):
        return False
    if _POSSESSIVE.match(text, span.end) and text[span.start : span.end].lower() not in _CONTRACTED:
        return False
    return _continues(text, span.end, step=1)


def _continues(text: str, position: int, *, step: int) -> bool:
    near = text[position : position + 2] if step > 0 else text[max(0, position - 1) : position + 1]
    if near == _DASH:
        return False
    for index in range(position, position + step * _LONGEST_JOINT, step):
        sign = text[index] if 0 <= index < len(text) else ""
        if sign not in _JOINTS:
            return _is_letter(sign)
    return False


def _is_letter(sign: str) -> bool:
    is_part = sign.isalnum() or (sign != "" and unicodedata.category(sign).startswith("M"))
    return is_part and not _WITHOUT_SPACES.match(sign)


class LinkedAnchors:
    """The anchors that pages link to, since a linked heading keeps its words.

    Reads all pages once, on first use.
    """

    def __init__(self, files: WorkingFiles) -> None:
        self._files = files

    def hold(self, page: ParsedPage, span: Span) -> bool:
        """Tells whether a span is in a heading that is linked to by an anchor made of its words."""
        for heading in page.headings:
            if heading.content.start <= span.start < heading.content.end:
                return not heading.has_explicit_anchor and heading.anchor in self._anchors
        return False

    @cached_property
    def _anchors(self) -> frozenset[str]:
        found: set[str] = set()
        for path in self._files.paths():
            found.update(_ANCHOR.findall(self._files.read(path) or ""))
        return frozenset(unquote(anchor) for anchor in found)


@dataclass(frozen=True)
class Replacement:
    """A page's new text, the number of replacements, and of the places that were left alone, by reason.

    `other_words` counts the words that contain the text.
    """

    text: str
    count: int
    left: Counter[str]
    other_words: Counter[str]


def replace_in_page(page: ParsedPage, old: str, new: str, anchors: LinkedAnchors) -> Replacement:
    """Replaces `old` in prose, where it consists of whole words.

    Leaves it alone in code, links, tags and front matter, and as a part of another word or a name.
    """
    rules = _Rules(page, old, new, anchors)
    parts: list[str] = []
    left, other_words = Counter[str](), Counter[str]()
    done, position = 0, page.text.find(old)
    while position >= 0:
        end = position + len(old)
        reason = rules.why_left(Span(position, end))
        if reason:
            left[reason] += 1
            other_words.update(rules.words_around(Span(position, end)) if reason == OTHER_WORDS else ())
        else:
            parts += [page.text[done:position], new]
            done = end
        position = page.text.find(old, end)
    return Replacement("".join([*parts, page.text[done:]]), len(parts) // 2, left, other_words)


class _Rules:
    def __init__(self, page: ParsedPage, old: str, new: str, anchors: LinkedAnchors) -> None:
        self._page = page
        self._anchors = anchors
        self._is_address = bool(_ADDRESS.fullmatch(old) and _ADDRESS.fullmatch(new))
        self._prose_starts = [span.start for span in page.prose]
        self._region_starts = [region.span.start for region in page.regions]

    def why_left(self, span: Span) -> str | None:
        """Returns why a span must be left alone; None if it is to be replaced."""
        if self._is_address:
            return self._why_address_left(span)
        if not self._is_prose(span):
            return self._kind(span)
        if any(self._is_name(word, span) for word in self._words_at(span)):
            return NAMES
        if not is_whole(self._page.text, span):
            return OTHER_WORDS
        return LINKED_HEADINGS if self._anchors.hold(self._page, span) else None

    def words_around(self, span: Span) -> Sequence[str]:
        """Returns the words that overlap a span."""
        return [word.text for word in self._words_at(span)]

    def _why_address_left(self, span: Span) -> str | None:
        if self._page.not_parsed:  # code and text can't be told apart there
            return str(RegionKind.MARKUP)
        kind = self._region_kind(span)
        if kind in {RegionKind.CODE, RegionKind.FRONT_MATTER}:
            return str(kind)
        return str(RegionKind.LINK) if _GOES_ON.match(self._page.text, span.end) else None

    def _is_prose(self, span: Span) -> bool:
        pieces = _LINE.finditer(self._page.text, span.start, span.end)
        return all(self._is_within_prose(piece.start(), piece.end()) for piece in pieces if piece[0].strip())

    def _is_within_prose(self, start: int, end: int) -> bool:
        index = bisect_right(self._prose_starts, start) - 1
        return index >= 0 and end <= self._page.prose[index].end

    def _kind(self, span: Span) -> str:
        return str(self._region_kind(span) or RegionKind.MARKUP)

    def _region_kind(self, span: Span) -> RegionKind | None:
        index = bisect_right(self._region_starts, span.end - 1) - 1
        region: Region | None = self._page.regions[index] if index >= 0 else None
        return region.kind if region and region.span.end > span.start else None

    @cached_property
    def _words(self) -> Sequence[ProseWord]:
        return [word for span in self._page.prose for word in words_in(self._page.text, span)]

    @cached_property
    def _word_starts(self) -> Sequence[int]:
        return [word.span.start for word in self._words]

    def _words_at(self, span: Span) -> Sequence[ProseWord]:
        first = max(0, bisect_right(self._word_starts, span.start) - 1)
        last = bisect_right(self._word_starts, span.end - 1)
        return [word for word in self._words[first:last] if word.span.end > span.start]

    def _is_name(self, word: ProseWord, span: Span) -> bool:
        is_whole = span.start <= word.core.start and word.core.end <= span.end
        touches = span.start < word.core.end and word.core.start < span.end
        if not touches or (is_whole and word.name is not NameKind.CODE):
            return False
        return word.name is not None or ("-" in word.text and word.text in self._not_prose)

    @cached_property
    def _not_prose(self) -> str:
        return "\n".join(self._page.text[region.span.start : region.span.end] for region in self._page.regions)
