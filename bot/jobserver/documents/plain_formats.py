"""reStructuredText, AsciiDoc, HTML and plain text, read with care: what is not surely prose is left out."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise

from bot.jobserver.documents.markdown import link_kind
from bot.jobserver.documents.masking import MASK, mask
from bot.jobserver.documents.page import AnchorNames, Heading, Link, Page, Region, RegionKind, Span

_MARKED = re.compile(
    r"``[^`\n]++``|(?<!\w):[\w+.-]{1,60}+(?::[\w+.-]{1,60}+){0,2}+:`[^`\n]++`|`[^`\n]++`_{0,2}"
    r"|\|[^|\n]++\|_{0,2}|\[[^\[\]\n]++\]_"
)
"""reStructuredText within a line: literals, roles, references, substitutions, footnotes."""
_ASCIIDOC_MARKED = re.compile(
    r"`[^`\n]{1,300}+`|\+\+?[^+\n]{1,300}+\+\+?|<<[^<>\n]{1,300}+>>|\{[\w-]{1,60}+\}|\[\[[^\[\]\n]{1,100}+\]\]"
    r"|\b(?:link|image|xref|include|mailto|footnote|kbd|menu|btn|pass|stem|icon):{1,2}[^\s\[]{0,300}+"
)
_UNDERLINE = re.compile(r"(?P<sign>[=\-`:.'\"~^_*+#<>])(?P=sign){2,}+[ \t\r]*")
_RST_BLOCK = re.compile(r"(?:\.\.(?:[ \t]|$)|:[\w -]{1,60}+:(?:[ \t]|$)|>>> |__ )")
_ASCIIDOC_LINE = re.compile(r"(?:[:/\[.|+]|(?:image|include|ifdef|ifndef|endif|toc|video|audio)::)")
_ASCIIDOC_TITLE = re.compile(r"(?P<marks>={1,6})[ \t]++(?P<title>\S.*)")
_ASCIIDOC_FENCES = ("----", "....", "++++", "////", "____", "|===", "```", "--")
_HTML_TITLE = re.compile(r"<title[^>\n]{0,200}+>([^<]{1,500}+)<", re.IGNORECASE)
_HTML_LINK = re.compile(r"""(?<![\w:.@-])(?P<name>id|name|href|src)=["'](?P<value>[^"'\n]{0,2000}+)["']""")
_LOADED = re.compile(r"<(?:script|link|iframe)\b", re.IGNORECASE)
"""What nobody follows, and a build often makes."""


def parse_text(text: str) -> Page:
    """Plain text: all lines that are not indented."""
    return _page(text, _flat_lines(text), None)


def parse_html(text: str) -> Page:
    """HTML: the text between tags, except that of scripts, styles and code; titles and links."""
    masked = mask(text, start=0, mdx=False)
    line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
    title = _HTML_TITLE.search(text)
    links, anchors = [], set()
    for tag in masked.tags:
        for match in _HTML_LINK.finditer(text[tag.start : min(tag.end, tag.start + 20_000)]):
            if match["name"] in {"id", "name"}:
                anchors.add(match["value"])
            elif not _LOADED.match(text, tag.start):
                line, target = bisect_right(line_starts, tag.start), match["value"]
                links.append(Link(target, line, link_kind(target), is_image=match["name"] == "src"))
    prose = tuple(_between_masks(masked.text, Span(0, len(text))))
    return Page(
        text, title[1].strip() if title else None, None, (), frozenset(anchors), tuple(links), prose,
        tuple(masked.regions),
    )  # fmt: skip


def parse_rst(text: str) -> Page:
    """Paragraphs and lists that are not part of a directive or a literal block; titles stay as they are."""
    lines = list(_lines(text))
    headings = tuple(_rst_headings(lines))
    prose = [span for span, _ in _rst_prose(lines)]
    return _page(text, _cut(text, prose, _MARKED), headings[0].title if headings else None, headings)


def parse_asciidoc(text: str) -> Page:
    """Paragraphs outside of delimited blocks."""
    lines = list(_lines(text))
    headings = tuple(_asciidoc_headings(lines))
    spans = list(_asciidoc_prose(lines))
    return _page(text, _cut(text, spans, _ASCIIDOC_MARKED), headings[0].title if headings else None, headings)


_Line = tuple[int, str]
"""Where it begins, and its text without the line end."""


def _lines(text: str) -> Iterator[_Line]:
    position = 0
    for line in text.split("\n"):
        yield position, line.rstrip("\r")
        position += len(line) + 1


def _flat_lines(text: str) -> Iterator[Span]:
    for start, line in _lines(text):
        if line.strip() and not line.startswith(("    ", "\t")):
            yield Span(start, start + len(line))


def _rst_headings(lines: list[_Line]) -> Iterator[Heading]:
    names, levels = AnchorNames(), list[str]()
    for number, ((start, line), (_, below)) in enumerate(pairwise(lines), start=1):
        match = _UNDERLINE.fullmatch(below)
        if match is None or not line.strip() or _UNDERLINE.fullmatch(line) or len(below.rstrip()) < len(line.strip()):
            continue
        if match["sign"] not in levels:
            levels.append(match["sign"])
        title, level = line.strip(), levels.index(match["sign"]) + 1
        yield Heading(level, title, names.next_for(title), number, Span(start, start + len(line)))


def _rst_prose(lines: list[_Line]) -> Iterator[tuple[Span, str]]:
    hidden_from: int | None = None
    previous = ""
    for (start, line), (_, below) in zip(lines, [*lines[1:], (0, "")], strict=True):
        body = line.lstrip()
        indent = len(line) - len(body)
        if not body:
            continue
        if hidden_from is not None and indent > hidden_from:
            continue
        hidden_from = indent if _RST_BLOCK.match(body) or body.rstrip().endswith("::") else None
        is_title = _UNDERLINE.fullmatch(below) is not None or _UNDERLINE.fullmatch(line) is not None
        if not (_RST_BLOCK.match(body) or is_title or _is_table(body) or (indent and not previous)):
            yield Span(start + indent, start + len(line)), line
        previous = body


def _is_table(body: str) -> bool:
    return body.startswith(("+-", "+=", "|", "===", "---"))


def _asciidoc_headings(lines: list[_Line]) -> Iterator[Heading]:
    names = AnchorNames()
    for number, (start, line) in enumerate(lines, start=1):
        if match := _ASCIIDOC_TITLE.match(line):
            title = match["title"].strip()
            content = Span(start + match.start("title"), start + match.end("title"))
            yield Heading(len(match["marks"]), title, names.next_for(title), number, content)


def _asciidoc_prose(lines: list[_Line]) -> Iterator[Span]:
    fence = ""
    for start, line in lines:
        mark = line.rstrip()
        if fence:
            fence = "" if mark == fence else fence
        elif mark.startswith(_ASCIIDOC_FENCES) and not mark.strip(mark[:1] + mark[-1:]):
            fence = mark
        elif mark and not line[0].isspace() and not _ASCIIDOC_LINE.match(line):
            yield Span(start, start + len(line))


def _cut(text: str, spans: list[Span], marked: re.Pattern[str]) -> Iterator[Span]:
    for span in spans:
        position = span.start
        for match in marked.finditer(text, span.start, span.end):
            if match.start() > position:
                yield Span(position, match.start())
            position = match.end()
        if position < span.end:
            yield Span(position, span.end)


def _between_masks(text: str, whole: Span) -> Iterator[Span]:
    position = whole.start
    for part in re.split(f"[{MASK}\\n]", text[whole.start : whole.end]):
        if part.strip():
            yield Span(position, position + len(part))
        position += len(part) + 1


def _page(text: str, prose: Iterator[Span], title: str | None, headings: tuple[Heading, ...] = ()) -> Page:
    spans = tuple(prose)
    anchors = frozenset(heading.anchor for heading in headings)
    return Page(text, title, None, headings, anchors, (), spans, tuple(_gaps(text, spans)))


def _gaps(text: str, prose: tuple[Span, ...]) -> Iterator[Region]:
    position = 0
    for span in (*prose, Span(len(text), len(text))):
        if text[position : span.start].strip():
            yield Region(Span(position, span.start), RegionKind.MARKUP)
        position = span.end


PARSERS: dict[str, Callable[[str], Page]] = {
    ".rst": parse_rst,
    ".adoc": parse_asciidoc,
    ".asciidoc": parse_asciidoc,
    ".html": parse_html,
    ".htm": parse_html,
    ".txt": parse_text,
}
"""By the endings of files."""
