"""Splits prose into words, and recognises names: flags, paths, identifiers, constants."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from bot.jobserver.documents.page import Span

_CHUNK = re.compile(r"[^\s\u2013\u2014\u2026|]+")
_OPENING = "([{\"'\u201c\u2018\u00ab*~!\u00a1\u00bf"
_CLOSING = ")]}\"'\u201d\u2019\u00bb*~.,;:!?"
_EMPHASISED = re.compile(r"_(?P<word>[^\W_]+)_[.,;:!?)]{0,3}")
_CODE_SIGNS = re.compile(r"[_/\\@=$#<>{}^`%+&\ue000]|\w[(\[:~]|(?<=\w)\[|^-")
_DOTTED = re.compile(r"\w\.\w")
_GLUED = frozenset("_`{}$&;\\-/@#=~+\ue000")
"""Characters that make an adjacent word part of a larger name, if they are not prose."""


class NameKind(Enum):
    """`CODE` can't be a word of a language; `PROPER` may be a product's name or an abbreviation."""

    CODE = "code"
    PROPER = "proper"


@dataclass(frozen=True)
class ProseWord:
    """A word between spaces; `core` excludes quotation marks, brackets and punctuation around it."""

    span: Span
    core: Span
    text: str
    name: NameKind | None


def words_in(text: str, prose: Span) -> Iterator[ProseWord]:
    """Yields the words of a span of prose, in order."""
    found = _words_between(text, prose, prose.start, prose.end)
    yield from (word for word in found if word.core.start < word.core.end)


def _words_between(text: str, prose: Span, start: int, end: int) -> Iterator[ProseWord]:
    for match in _CHUNK.finditer(text, start, end):
        span = Span(match.start(), match.end())
        core = _core(text, span)
        kind = NameKind.CODE if _is_glued(text, prose, span) else _name_kind(text, span, core)
        yield ProseWord(span, core, text[core.start : core.end], kind)


def _core(text: str, span: Span) -> Span:
    chunk = text[span.start : span.end]
    if match := _EMPHASISED.fullmatch(chunk):
        return Span(span.start + match.start("word"), span.start + match.end("word"))
    core = chunk.lstrip(_OPENING)
    start = span.start + len(chunk) - len(core)
    return Span(start, start + len(core.rstrip(_CLOSING)))


def _is_glued(text: str, prose: Span, span: Span) -> bool:
    before = text[span.start - 1] if span.start == prose.start > 0 else ""
    after = text[span.end] if span.end == prose.end < len(text) else ""
    return any(sign and (sign in _GLUED or sign.isalnum()) for sign in (before, after))


def _name_kind(text: str, span: Span, core: Span) -> NameKind | None:
    word = text[core.start : core.end]
    if not word:
        return None
    chunk = text[span.start : span.end]
    if not _EMPHASISED.fullmatch(chunk) and (_CODE_SIGNS.search(word) or "_" in chunk or _is_call(text, span, core)):
        return NameKind.CODE
    has_digit, has_letter = any(map(str.isdigit, word)), any(map(str.isalpha, word))
    if _DOTTED.search(word) or (has_digit and has_letter) or is_camel(word) or is_abbreviation(word):
        return NameKind.PROPER
    return None


def _is_call(text: str, span: Span, core: Span) -> bool:
    return text.startswith("(", core.end, span.end)


def is_camel(word: str) -> bool:
    """Tells whether an upper-case letter follows a lower-case one."""
    return any(first.islower() and second.isupper() for first, second in pairwise(word))


def is_abbreviation(word: str) -> bool:
    """Tells whether a word is all upper case, possibly with a plural `s`, as constants and abbreviations are."""
    stem = word.removesuffix("'s").removesuffix("\u2019s").removesuffix("s")
    return len(stem) > 1 and stem.isupper()
