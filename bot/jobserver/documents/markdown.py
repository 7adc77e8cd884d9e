"""Parses Markdown and MDX with markdown-it: headings, links, and prose."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.utils import EnvType

from bot.jobserver.documents.delimiters import Tag
from bot.jobserver.documents.front_matter import find_front_matter
from bot.jobserver.documents.inline import ContentSpan, Recording, RecordingInline
from bot.jobserver.documents.masking import MASK, mask
from bot.jobserver.documents.page import (
    AnchorNames,
    FrontMatter,
    Heading,
    Link,
    LinkKind,
    ParsedPage,
    Region,
    RegionKind,
    Span,
    line_starts,
)

_MAX_TAG = 20_000
"""How many characters of a tag are examined."""
_MAX_BRACKET_WORK = 4_000_000
"""The limit for opening brackets times characters, summed over paragraphs: markdown-it searches the end of each."""
_ATTRIBUTE = re.compile(r"""(?<![\w:.@-])(?P<name>id|name|href|src|to)=["'](?P<value>[^"'\n]{0,2000}+)["']""")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}+:|//")


class _CommonMark(MarkdownIt):
    """A parser that keeps addresses as they are written."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "maxNesting": 20})
        self.enable(["table", "strikethrough"])

    def normalizeLink(self, url: str) -> str:  # noqa: N802 (markdown-it's name)
        return url

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802 (markdown-it's name; nothing is rendered)
        return True


def parse_markdown(text: str, *, mdx: bool) -> ParsedPage:
    """Parses a page. Its caller limits the size."""
    return _MarkdownReader(text, mdx=mdx).read()


@dataclass
class _PageParts:
    title: str | None = None
    headings: list[Heading] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    links: list[Link] = field(default_factory=list)
    prose: list[Span] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)


class _MarkdownReader:
    def __init__(self, text: str, *, mdx: bool) -> None:
        self._text = text
        self._mdx = mdx
        self._front_matter = find_front_matter(text)
        self._masked = mask(text, start=self._body_start(), mdx=mdx)
        self._line_starts = line_starts(self._masked.text)
        self._id_places = list(self._masked.ids)
        self._inline = RecordingInline()
        self._anchor_names = AnchorNames()
        self._found = _PageParts(regions=list(self._masked.regions))
        self._left = _MAX_BRACKET_WORK
        self._skipped = 0
        self._environment: EnvType = {}

    def read(self) -> ParsedPage:
        parser = _CommonMark()
        parser.inline = self._inline
        parser.disable(["code"] if self._mdx else [])
        parser.core.ruler.enableOnly(["block"])
        tokens = parser.parse(self._masked.text, self._environment)
        self._read_tags()
        self._read_tokens(tokens, parser)
        return self._page()

    def _body_start(self) -> int:
        if self._front_matter is not None:
            return self._front_matter.span.end
        return 1 if self._text.startswith("\ufeff") else 0

    def _page(self) -> ParsedPage:
        found = self._found
        if self._front_matter is not None:
            found.regions.insert(0, Region(self._front_matter.span, RegionKind.FRONT_MATTER))
        return ParsedPage(
            self._text,
            _title(self._front_matter, found.headings),
            self._front_matter,
            tuple(found.headings),
            frozenset(found.anchors),
            tuple(sorted(found.links, key=lambda link: link.line)),
            tuple(merged(found.prose)),
            tuple(sorted(found.regions, key=lambda region: region.span.start)),
            self._not_parsed(),
        )

    def _not_parsed(self) -> str:
        if self._masked.not_parsed_from is not None:
            line = self._line_of(self._masked.not_parsed_from)
            return f"what follows line {line}, where a brace is not closed"
        return f"{self._skipped} paragraphs with too many brackets" if self._skipped else ""

    def _line_of(self, position: int) -> int:
        return bisect_right(self._line_starts, position)

    def _read_tags(self) -> None:
        for tag in self._masked.tags:
            anchors, links = anchors_and_links(self._text, tag, self._line_of(tag.start))
            self._found.anchors |= anchors
            self._found.links += links

    def _read_tokens(self, tokens: Sequence[Token], parser: MarkdownIt) -> None:
        cursor = 0
        for index, token in enumerate(tokens):
            if token.type in {"code_block", "fence"} and token.map:
                self._found.regions.append(Region(self._span_of_lines(token.map), RegionKind.CODE))
            if token.type != "inline" or not token.map:
                continue
            lines, cursor = self._lines_of(token, cursor)
            recording = self._record(token.content, parser)
            if recording is None or lines is None:
                self._skipped += recording is None
                continue
            self._keep(recording, lines)
            if tokens[index - 1].type == "heading_open":
                self._keep_heading(tokens[index - 1], recording, lines)

    def _span_of_lines(self, lines: Sequence[int]) -> Span:
        starts = self._line_starts
        end = starts[lines[1]] if lines[1] < len(starts) else len(self._text)
        return Span(starts[lines[0]], end)

    def _record(self, content: str, parser: MarkdownIt) -> Recording | None:
        work = content.count("[") * len(content)
        if work > self._left:
            return None
        self._left -= work
        return self._inline.record(content, parser, self._environment)

    def _lines_of(self, token: Token, cursor: int) -> tuple["_ParagraphLines | None", int]:
        """Finds the content's lines in the source. `cursor` is the end of the previous one: cells share a line."""
        lines, at = _ParagraphLines(), 0
        for number, content in enumerate(token.content.split("\n"), start=(token.map or [0])[0]):
            stripped = content.strip()
            line_start = self._line_starts[number]
            found = self._place_in_line(stripped, number, max(cursor, line_start))
            if found < 0:
                return None, cursor
            indent = len(content) - len(content.lstrip())
            lines.add(at + indent, found, len(stripped))
            at += len(content) + 1
            cursor = found + len(stripped)
        return lines, cursor

    def _place_in_line(self, content: str, number: int, start: int) -> int:
        end = self._line_starts[number + 1] if number + 1 < len(self._line_starts) else len(self._masked.text)
        return self._masked.text.find(content, start, end) if content else start

    def _keep(self, recording: Recording, lines: "_ParagraphLines") -> None:
        found = self._found
        not_prose = sorted([*recording.targets, *recording.code])
        for place in subtracted(recording.prose, not_prose):
            found.prose += self._without_masks(lines.spans(place))
        for places, kind in ((recording.code, RegionKind.CODE), (recording.targets, RegionKind.LINK)):
            found.regions += [Region(span, kind) for place in places for span in lines.spans(place)]
        for link in recording.links:
            line = self._line_of(lines.position(link.start))
            found.links.append(Link(link.target, line, link_kind(link.target), link.is_image))

    def _without_masks(self, spans: Sequence[Span]) -> Iterator[Span]:
        for span in spans:
            position = span.start
            for part in self._masked.text[span.start : span.end].split(MASK):
                if part:
                    yield Span(position, position + len(part))
                position += len(part) + 1

    def _keep_heading(self, opening: Token, recording: Recording, lines: "_ParagraphLines") -> None:
        title = _plain_text(recording.tokens)
        content = lines.whole()
        explicit = self._explicit_id(content)
        anchor = explicit or self._anchor_names.next_for(title)
        self._found.anchors.add(anchor)
        level, line = int(opening.tag[1:]), self._line_of(content.start)
        self._found.headings.append(Heading(level, title, anchor, line, content, bool(explicit)))

    def _explicit_id(self, content: Span) -> str:
        index = bisect_left(self._id_places, content.start)
        is_there = index < len(self._id_places) and self._id_places[index] <= content.end + 1
        return self._masked.ids[self._id_places[index]] if is_there else ""


@dataclass
class _ParagraphLines:
    """Maps the lines of a paragraph's content to their positions in the source."""

    contents: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def add(self, content: int, source: int, length: int) -> None:
        self.contents.append(content)
        self.sources.append(source)
        self.lengths.append(length)

    def position(self, at: int) -> int:
        index = max(0, bisect_right(self.contents, at) - 1)
        return self.sources[index] + max(0, at - self.contents[index])

    def whole(self) -> Span:
        return Span(self.sources[0], self.sources[-1] + self.lengths[-1])

    def spans(self, place: ContentSpan) -> list[Span]:
        """Returns the spans in the source, one for each line."""
        parts = []
        index = max(0, bisect_right(self.contents, place.start) - 1)
        while index < len(self.contents) and self.contents[index] < place.end:
            start = max(place.start, self.contents[index])
            end = min(place.end, self.contents[index] + self.lengths[index])
            if start < end:
                offset = self.sources[index] - self.contents[index]
                parts.append(Span(start + offset, end + offset))
            index += 1
        return parts


def link_kind(target: str) -> LinkKind:
    """Returns the kind of a link by its syntax."""
    if target.startswith("#"):
        return LinkKind.ANCHOR
    return LinkKind.ABSOLUTE if _ABSOLUTE.match(target) else LinkKind.RELATIVE


def merged(spans: Sequence[Span]) -> Iterator[Span]:
    """Yields the spans with those that touch joined."""
    current: Span | None = None
    for span in sorted(spans, key=lambda span: span.start):
        if current is not None and span.start <= current.end:
            current = Span(current.start, max(current.end, span.end))
            continue
        if current is not None:
            yield current
        current = span
    if current is not None:
        yield current


def subtracted(places: Sequence[ContentSpan], holes: Sequence[ContentSpan]) -> Iterator[ContentSpan]:
    """Yields the places without the sorted holes."""
    ordered, index = sorted(places), 0
    for place in ordered:
        start = place.start
        while index < len(holes) and holes[index].end <= start:
            index += 1
        at = index
        while at < len(holes) and holes[at].start < place.end:
            if holes[at].start > start:
                yield ContentSpan(start, holes[at].start)
            start = max(start, holes[at].end)
            at += 1
        if start < place.end:
            yield ContentSpan(start, place.end)


def anchors_and_links(text: str, tag: Tag, line: int, *, html: bool = False) -> tuple[set[str], list[Link]]:
    """Returns the anchors and links in the attributes of a tag on this line; those of components unless it is HTML."""
    anchors, links = set[str](), list[Link]()
    for match in _ATTRIBUTE.finditer(text, tag.start, min(tag.end, tag.start + _MAX_TAG)):
        name, value = match["name"], match["value"]
        if name in {"id", "name"}:
            anchors.add(value)
        elif name != "to" or not (html or tag.name == "Teleport"):  # Vue teleports to an element, not to a page
            links.append(Link(value, line, link_kind(value), is_image=name == "src"))
    return anchors, links


def _plain_text(tokens: Sequence[Token]) -> str:
    shown = ("text", "code_inline", "text_special")
    text = "".join(token.content if token.type in shown else " " * (token.type == "softbreak") for token in tokens)
    return text.replace(MASK, "").strip()


def _title(front_matter: FrontMatter | None, headings: Sequence[Heading]) -> str | None:
    if front_matter and front_matter.title:
        return front_matter.title
    return next((heading.title for heading in headings if heading.level == 1 and heading.title), None)
