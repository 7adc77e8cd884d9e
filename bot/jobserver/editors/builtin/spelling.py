"""Fixes the spelling of English prose if the correction is certain; other words are listed, not changed."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from bot.jobserver.documents.languages import has_foreign_words, is_english
from bot.jobserver.documents.page import ParsedPage, Span, line_starts
from bot.jobserver.documents.parsing import parse_page
from bot.jobserver.documents.words import ProseWord, words_in
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.replacement import LinkedAnchors
from bot.jobserver.editors.builtin.typos import ACCEPTED, Misspelling, find_misspellings

_MOST_OCCURRENCES = 5
"""A word that occurs more often in the repository is probably intended."""
_LEAST_LENGTH = 4
"""Shorter words are too often abbreviations."""
_NEVER_NAMES = frozenset(("teh", "hte", "adn", "taht", "thier", "wich", "whcih"))
"""Always typing errors, even in code."""
_SENTENCE_END = (".", "!", "?", ":", ">")
_ARROWS = ("->", "=>")
_QUOTES = frozenset("\"'\u2018\u2019\u201c\u201d\u00ab\u00bb")
_BLOCK_START = re.compile(r"[\s>#*+|\d.)-]*+")
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*+")
_SPELLING = re.compile(r" (?:typos?|misspell\w*|mis-?spelt|spelling) ")
_NEARBY = 500
"""How many characters on either side are examined, since a line can be a whole file."""
_BESIDE = 8
"""The same, for typing errors whose correct form is in most lines, such as "teh"."""
_BEFORE_WORD = " \t*_\"'\u201c\u2018(["


@dataclass(frozen=True)
class DoubtfulWord:
    """A word that was not changed, with possible corrections."""

    wrong: str
    corrections: tuple[str, ...]
    path: PurePosixPath
    line: int


@dataclass
class SpellingResult:
    """`counts` by page; `foreign` is the number of pages skipped because they may not be in English.

    `elsewhere`: other pages with words that look misspelt.
    """

    counts: dict[PurePosixPath, int] = field(default_factory=dict)
    doubts: list[DoubtfulWord] = field(default_factory=list)
    foreign: int = 0
    elsewhere: Sequence[PurePosixPath] = ()
    not_parsed: dict[PurePosixPath, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Finding:
    path: PurePosixPath
    line: int
    span: Span
    wrong: str
    corrections: tuple[str, ...]
    is_doubtful: bool
    is_linked: bool


def fix_spelling(files: WorkingFiles, pages: Sequence[PurePosixPath]) -> SpellingResult:
    """Corrects the pages in place. Raises EditError if the spelling program is missing or fails."""
    return _Speller(files, pages).fix()


def misspelt_pages(files: WorkingFiles, pages: Sequence[PurePosixPath]) -> list[PurePosixPath]:
    """Returns the pages with certain misspellings. Raises as `fix_spelling` does."""
    return list(_Speller(files, pages).sure())


def _without_variants(report: Mapping[PurePosixPath, Sequence[Misspelling]]) -> dict[PurePosixPath, list[Misspelling]]:
    return {
        path: [entry for entry in entries if entry.wrong.lower() not in ACCEPTED] for path, entries in report.items()
    }


class _Speller:
    def __init__(self, files: WorkingFiles, pages: Sequence[PurePosixPath]) -> None:
        self._files = files
        self._pages = set(pages)
        self._report = _without_variants(find_misspellings(files.on_disk(files.paths()), files.paths()))
        self._total = Counter(found.wrong.lower() for entries in self._report.values() for found in entries)
        self._in_code: set[str] = set()
        self._in_other_languages: set[str] = set()
        self._proper: set[str] = set()
        self._anchors = LinkedAnchors(files)
        others = [path for path, entries in self._report.items() if entries and path not in self._pages]
        self._result = SpellingResult(elsewhere=others)

    def fix(self) -> SpellingResult:
        for path, found in self.sure().items():
            self._apply(path, found)
        return self._result

    def sure(self) -> dict[PurePosixPath, list[_Finding]]:
        """Returns the certain misspellings by page, and records the doubtful ones."""
        wanted = {entry.wrong.lower() for path in self._pages for entry in self._report.get(path, ())}
        findings = [
            finding
            for path, entries in sorted(self._report.items())
            if path in self._pages or any(entry.wrong.lower() in wanted for entry in entries)
            for finding in self._findings(path, entries)
        ]
        sure: dict[PurePosixPath, list[_Finding]] = defaultdict(list)
        for finding in findings:
            if self._is_sure(finding):
                sure[finding.path].append(finding)
            else:
                self._result.doubts.append(_doubt(finding))
        return sure

    def _findings(self, path: PurePosixPath, entries: Sequence[Misspelling]) -> list[_Finding]:
        """Returns the misspellings in English prose, and records words that occur elsewhere."""
        text = self._files.read(path)
        if text is None:
            return []
        page = parse_page(path, text)
        is_wanted = path in self._pages
        if page.not_parsed and is_wanted:
            self._result.not_parsed[path] = page.not_parsed
        if not is_english(path, page):
            self._in_other_languages.update(entry.wrong.lower() for entry in entries)
            self._result.foreign += is_wanted
            return []
        located = _located(page, entries)
        self._in_code.update(entry.wrong.lower() for entry, word in located if word is None)
        found = [self._finding(path, page, entry, word) for entry, word in located if word is not None]
        return found if is_wanted else []

    def _finding(self, path: PurePosixPath, page: ParsedPage, entry: Misspelling, word: "_Located") -> _Finding:
        is_linked = self._anchors.hold(page, word.span)
        if word.is_capitalised_within:
            self._proper.add(entry.wrong.lower())
        doubtful = word.is_part or word.is_capitalised_within or has_foreign_words(word.paragraph)
        doubtful = doubtful or _tells_of_spelling(word.nearby, entry.corrections)
        return _Finding(path, entry.line, word.span, entry.wrong, entry.corrections, doubtful, is_linked)

    def _is_sure(self, finding: _Finding) -> bool:
        word = finding.wrong.lower()
        if finding.is_doubtful or finding.is_linked or len(finding.corrections) != 1:
            return False
        if word in _NEVER_NAMES:
            return True
        if len(word) < _LEAST_LENGTH or self._total[word] > _MOST_OCCURRENCES:
            return False
        if finding.corrections[0].endswith("s") is not word.endswith("s"):  # such entries guess a plural
            return False
        return word not in self._in_code | self._in_other_languages | self._proper

    def _apply(self, path: PurePosixPath, findings: Sequence[_Finding]) -> None:
        text = self._files.read(path) or ""
        parts, done = list[str](), 0
        for finding in sorted(findings, key=lambda finding: finding.span.start):
            parts += [text[done : finding.span.start], finding.corrections[0]]
            done = finding.span.end
        self._files.write(path, "".join([*parts, text[done:]]))
        self._result.counts[path] = len(findings)


def _doubt(finding: _Finding) -> DoubtfulWord:
    return DoubtfulWord(finding.wrong, finding.corrections, finding.path, finding.line)


@dataclass(frozen=True)
class _Located:
    """`is_part`: of a compound. `is_capitalised_within`: a sentence. `nearby`: the text around it in its line."""

    span: Span
    is_part: bool
    is_capitalised_within: bool
    paragraph: str
    nearby: str


def _located(page: ParsedPage, entries: Sequence[Misspelling]) -> list[tuple[Misspelling, _Located | None]]:
    """Locates each misspelling in prose; None for one in code, a link or a name."""
    lines = _MisspellingPlaces(page)
    return [(entry, lines.locate(entry)) for entry in entries]


@dataclass(frozen=True)
class _Reached:
    """A position in a line; `offset` is in bytes."""

    line: int
    encoded: bytes
    offset: int = 0
    characters: int = 0


class _MisspellingPlaces:
    def __init__(self, page: ParsedPage) -> None:
        self._page = page
        self._lines = page.text.split("\n")
        self._starts = line_starts(page.text)
        self._prose_starts = [span.start for span in page.prose]
        self._words: dict[int, tuple[list[ProseWord], list[int]]] = {}
        self._last = _Reached(0, b"")

    def locate(self, entry: Misspelling) -> _Located | None:
        span = self._span(entry)
        if span is None or self._page.text[span.start : span.end] != entry.wrong:
            return None
        index = bisect_right(self._prose_starts, span.start) - 1
        if index < 0 or self._page.prose[index].end < span.end:
            return None
        word = self._word_at(index, span)
        if word is None or word.name is not None:
            return None
        line = self._lines[entry.line - 1]
        is_capitalised = entry.wrong[:1].isupper() and not _begins_sentence(self._page.text, span.start)
        nearby = self._nearby(entry, span, line)
        return _Located(span, not _is_whole(self._page.text, word, entry.wrong), is_capitalised, line, nearby)

    def _nearby(self, entry: Misspelling, span: Span, line: str) -> str:
        line_start = self._starts[entry.line - 1]
        reach = _BESIDE if entry.wrong.lower() in _NEVER_NAMES else _NEARBY
        start, end = max(line_start, span.start - reach), min(line_start + len(line), span.end + reach)
        return self._page.text[start:end]

    def _span(self, entry: Misspelling) -> Span | None:
        if not 0 < entry.line <= len(self._lines):
            return None
        start = self._starts[entry.line - 1] + self._characters_before(entry)
        return Span(start, start + len(entry.wrong))

    def _characters_before(self, entry: Misspelling) -> int:
        """Continues from the previous misspelling in the line, since a line can be a whole file."""
        if self._last.line != entry.line or self._last.offset > entry.offset:
            self._last = _Reached(entry.line, self._lines[entry.line - 1].encode())
        between = self._last.encoded[self._last.offset : entry.offset].decode(errors="replace")
        self._last = replace(self._last, offset=entry.offset, characters=self._last.characters + len(between))
        return self._last.characters

    def _word_at(self, index: int, span: Span) -> ProseWord | None:
        if index not in self._words:
            words = list(words_in(self._page.text, self._page.prose[index]))
            self._words[index] = words, [word.span.start for word in words]
        words, starts = self._words[index]
        at = bisect_right(starts, span.start) - 1
        return words[at] if at >= 0 and words[at].span.end >= span.end else None


def _tells_of_spelling(line: str, corrections: Sequence[str]) -> bool:
    """Tells whether a line also has the right spelling, as a changelog may, or mentions typos."""
    words = f" {' '.join(_WORD.findall(line.lower()))} "
    return bool(_SPELLING.search(words)) or any(f" {right.lower()} " in words for right in corrections)


def _is_whole(text: str, word: ProseWord, wrong: str) -> bool:
    """Tells whether a word is not part of a compound, cut off by dots, or in quotation marks."""
    if text.startswith(("...", "\u2026"), word.core.end):
        return False
    if {text[max(0, word.core.start - 1) : word.core.start], text[word.core.end : word.core.end + 1]} & _QUOTES:
        return False
    return word.text.removesuffix("'s").removesuffix("\u2019s") == wrong


def _begins_sentence(text: str, start: int) -> bool:
    line_start = text.rfind("\n", 0, start) + 1
    if _BLOCK_START.fullmatch(text, line_start, start):
        above = text[max(0, line_start - 500) : max(0, line_start - 1)].rstrip(" \t\r*_")
        is_marked = bool(text[line_start:start].strip())
        return is_marked or not above or above.endswith("\n") or above.endswith(_SENTENCE_END)
    before = text[line_start:start].rstrip(_BEFORE_WORD)
    return before.endswith(_SENTENCE_END) and not before.endswith(_ARROWS)
