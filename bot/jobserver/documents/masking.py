"""Finds everything in a page that is not Markdown, such as tags and templates, and blanks it out for the parser.

Blanked text keeps its length, so that positions stay valid: whole lines become spaces, parts of lines become `MASK`,
which does not occur in words.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.jobserver.documents.delimiters import Fence, Tag, UnclosedBraceError, expression_end, opening_fence, tag_at
from bot.jobserver.documents.page import Region, RegionKind, Span, line_end

MASK = "\ue000"
_SPECIAL = re.compile(r"[`<{\\\n$\[]")
_BACKTICKS = re.compile(r"`++")
_BLANK_LINE = re.compile(r"\n[ \t\r]*+(?=\n)")
_MODULE_CODE = re.compile(r"(?:import|export)[ \t{]")
_SURE_MODULE_CODE = re.compile(
    r"import[ \t]*+(?:[{'\"*]|\w++[ \t]++from[ \t])|export[ \t]++(?:const|default|function|let)\b"
)
"""For Markdown, in which a paragraph may begin with the word "import"."""
_NOT_PROSE_LINE = re.compile(r"[ \t]*+(?:::: |--8<--|;--8<--|\*\[[^\]\n]{1,100}+\]:|@include)")
_ADDRESS = re.compile(r"<(?:[a-z][a-z0-9+.-]{1,30}+:[^\s<>]*+|[^\s<>@/]{1,100}+@[^\s<>@]{1,200}+)>", re.IGNORECASE)
_TEMPLATE = re.compile(r"\{\{[^\n{}]{0,500}+\}\}|\{%[^\n%]{0,500}+%\}|\{[^\n{}]{0,300}+\}")
_EXPLICIT_ID = re.compile(r"\{:? ?#(?P<id>[\w:.-]{1,200}+)[^\n{}]{0,200}+\}")
_MATHEMATICS = re.compile(r"\$(?=[^\s$])[^$\n]{0,300}+(?<=\S)\$(?!\d)")
_WIKI_LINK = re.compile(r"\[\[[^\[\]\n]{1,300}+\]\]")
_PATTERNS = {"$": (_MATHEMATICS, RegionKind.CODE), "[": (_WIKI_LINK, RegionKind.LINK)}
_VERBATIM = frozenset(
    ("code", "pre", "script", "style", "kbd", "samp", "var", "tt", "textarea", "svg", "math", "template", "codeblock",
     "snippet", "latex", "mermaid")
)  # fmt: skip
"""Elements whose text is not prose, in lower case."""
_NO_LINE_END = re.compile(r"[^\n]")
_ALL_MASKED = re.compile(rf"[\s{MASK}]*")


@dataclass
class MaskedText:
    """A text in which everything but Markdown is blanked out, and what was found there, in order."""

    text: str
    tags: list[Tag] = field(default_factory=list)
    ids: dict[int, str] = field(default_factory=dict)
    """Explicit ids such as `{#install}` by their positions."""
    regions: list[Region] = field(default_factory=list)
    not_parsed_from: int | None = None


def mask(text: str, *, start: int, mdx: bool) -> MaskedText:
    """Returns the text from `start` on with everything but Markdown blanked out. Takes linear time."""
    scanner = _Scanner(text, mdx=mdx)
    try:
        scanner.scan(start)
    except UnclosedBraceError:
        scanner.masked.not_parsed_from = scanner.position
        scanner.mark(scanner.position, len(text), RegionKind.CODE)
    masked = scanner.masked
    masked.text = _blanked(text, start, masked.regions)
    return masked


class _Scanner:
    def __init__(self, text: str, *, mdx: bool) -> None:
        self.masked = MaskedText(text)
        self.position = 0
        self._text = text
        self._mdx = mdx
        self._blanks = [match.start() for match in _BLANK_LINE.finditer(text)]
        self._runs: dict[int, list[int]] = {}
        for match in _BACKTICKS.finditer(text):
            self._runs.setdefault(len(match[0]), []).append(match.start())
        self._small = text.lower() if len(text.lower()) == len(text) else text
        self._never_closed: set[str] = set()

    def mark(self, start: int, end: int, kind: RegionKind) -> None:
        if end > start:
            self.masked.regions.append(Region(Span(start, end), kind))

    def scan(self, start: int) -> None:
        self.position = start
        at_line_start = True
        while self.position < len(self._text):
            if at_line_start and (end := self._line_construct()) is not None:
                self.position = end
                continue
            match = _SPECIAL.search(self._text, self.position)
            if match is None:
                return
            self.position = match.start()
            at_line_start = match[0] == "\n"
            self.position = self._after(match[0])

    def _after(self, sign: str) -> int:
        """Returns the position after the construct that begins here."""
        if sign == "\\":
            return self.position + (1 if self._text.startswith("\n", self.position + 1) else 2)
        if sign in _PATTERNS:
            return self._after_pattern(*_PATTERNS[sign])
        after = {"`": self._after_backticks, "<": self._after_angle, "{": self._after_brace}.get(sign)
        return after() if after else self.position + 1

    def _after_pattern(self, pattern: re.Pattern[str], kind: RegionKind) -> int:
        match = pattern.match(self._text, self.position)
        if match is None:
            return self.position + 1
        self.mark(match.start(), match.end(), kind)
        return match.end()

    def _line_construct(self) -> int | None:
        """Returns the start of the line after the construct that this line begins; None if it is text."""
        end = line_end(self._text, self.position)
        line = self._text[self.position : end]
        fence = opening_fence(line)
        if fence is not None:
            return self._after_fence(fence, end)
        module_code = _MODULE_CODE if self._mdx else _SURE_MODULE_CODE
        if module_code.match(line) and self._follows_blank():
            return self._after_module_code()
        if _NOT_PROSE_LINE.match(line):
            self.mark(self.position, end, RegionKind.CODE)
            return end + 1
        return None

    def _after_fence(self, fence: Fence, end: int) -> int:
        start, position = self.position, end + 1
        while position < len(self._text):
            end = line_end(self._text, position)
            if fence.is_closed_by(self._text[position:end]):
                break
            position = end + 1
        self.mark(start, min(end, len(self._text)), RegionKind.CODE)
        return end + 1

    def _follows_blank(self) -> bool:
        before = self._text[max(0, self.position - 200) : self.position].rstrip(" \t")
        lines = before.split("\n")
        previous = lines[-2] if len(lines) > 1 else ""
        regions = self.masked.regions
        after_code = bool(regions) and regions[-1].span.end >= self.position - 1
        return not previous.strip() or previous.strip() == "---" or after_code

    def _after_module_code(self) -> int:
        """Marks module code, which ends at the first blank line outside its braces."""
        start = position = self.position
        while True:
            end = self._next_blank(position)
            brace = self._text.find("{", position, end)
            if brace < 0:
                break
            position = expression_end(self._text, brace)
        self.mark(start, end, RegionKind.CODE)
        return end + 1

    def _after_backticks(self) -> int:
        run = _BACKTICKS.match(self._text, self.position)
        after = run.end() if run else self.position + 1
        places = self._runs.get(after - self.position, [])
        index = bisect_left(places, after)
        if index < len(places) and places[index] < self._next_blank(self.position):
            return places[index] + after - self.position
        return after

    def _after_brace(self) -> int:
        explicit = _EXPLICIT_ID.match(self._text, self.position)
        if explicit:
            self.masked.ids[self.position] = explicit["id"]
            end = explicit.end()
        elif self._mdx:
            end = expression_end(self._text, self.position)
        else:
            template = _TEMPLATE.match(self._text, self.position)
            end = template.end() if template else self.position + 1
        if end > self.position + 1:
            self.mark(self.position, end, RegionKind.CODE)
        return end

    def _after_angle(self) -> int:
        if self._text.startswith("<!--", self.position):
            return self._marked(self._found("-->", self.position + 4), RegionKind.MARKUP)
        address = _ADDRESS.match(self._text, self.position)
        if address:
            return address.end()
        tag = tag_at(self._text, self.position, jsx=self._mdx)
        if tag is None:
            return self.position + 1
        self.masked.tags.append(tag)
        self._marked(tag.end, RegionKind.MARKUP)
        return self._after_verbatim(tag) if self._is_verbatim(tag) else tag.end

    @staticmethod
    def _is_verbatim(tag: Tag) -> bool:
        return tag.name.lower() in _VERBATIM and not (tag.is_closing or tag.is_empty)

    def _after_verbatim(self, tag: Tag) -> int:
        closing = f"</{tag.name.lower()}"
        end = -1 if closing in self._never_closed else self._small.find(closing, tag.end)
        if end < 0:
            self._never_closed.add(closing)
            end = self._next_blank(tag.end)
        self.mark(tag.end, end, RegionKind.CODE)
        return end

    def _marked(self, end: int, kind: RegionKind) -> int:
        self.mark(self.position, end, kind)
        return end

    def _found(self, wanted: str, position: int) -> int:
        found = self._text.find(wanted, position)
        return len(self._text) if found < 0 else found + len(wanted)

    def _next_blank(self, position: int) -> int:
        index = bisect_left(self._blanks, position)
        return self._blanks[index] if index < len(self._blanks) else len(self._text)


def _blanked(text: str, start: int, regions: list[Region]) -> str:
    """Returns the text with LF line ends, and with the regions and the first `start` characters blanked out."""
    parts = [_spaces(text[:start])]
    position = start
    for region in regions:
        parts += [text[position : region.span.start], _masks(text[region.span.start : region.span.end])]
        position = max(position, region.span.end)
    parts.append(text[position:])
    blanked = "".join(parts).replace("\r\n", " \n").replace("\r", "\n").replace("\0", MASK)
    return "\n".join(_without_masked_lines(blanked.split("\n")))


def _spaces(text: str) -> str:
    return _NO_LINE_END.sub(" ", text)


def _masks(text: str) -> str:
    return _NO_LINE_END.sub(MASK, text)


def _without_masked_lines(lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield " " * len(line) if _ALL_MASKED.fullmatch(line) else line
