"""reStructuredText, AsciiDoc, HTML and plain text: what the checks of links need of them, and a title."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import pairwise

from bot.jobserver.documents.markdown import link_kind
from bot.jobserver.documents.masking import mask
from bot.jobserver.documents.page import AnchorNames, Link, ParsedPage

_RST_UNDERLINE = re.compile(r"(?P<sign>[=\-`:.'\"~^_*+#<>])(?P=sign){2,}+[ \t\r]*")
_ASCIIDOC_TITLE = re.compile(r"={1,6}[ \t]++(?P<title>\S.*)")
_HTML_TITLE = re.compile(r"<title[^>\n]{0,200}+>([^<]{1,500}+)<", re.IGNORECASE)
_HTML_LINK = re.compile(r"""(?<![\w:.@-])(?P<name>id|name|href|src)=["'](?P<value>[^"'\n]{0,2000}+)["']""")
_LOADED = re.compile(r"<(?:script|link|iframe)\b", re.IGNORECASE)
"""What nobody follows, and a build often makes."""


def parse_html(text: str) -> ParsedPage:
    """Finds the title, links and anchors in tags outside of comments, scripts and code."""
    line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
    title = _HTML_TITLE.search(text)
    links, anchors = [], set()
    for tag in mask(text, start=0, mdx=False).tags:
        for match in _HTML_LINK.finditer(text[tag.start : min(tag.end, tag.start + 20_000)]):
            if match["name"] in {"id", "name"}:
                anchors.add(match["value"])
            elif not _LOADED.match(text, tag.start):
                line, target = bisect_right(line_starts, tag.start), match["value"]
                links.append(Link(target, line, link_kind(target), is_image=match["name"] == "src"))
    return ParsedPage(text, title[1].strip() if title else None, anchors=frozenset(anchors), links=tuple(links))


def parse_rst(text: str) -> ParsedPage:
    """Finds the headings: lines that are underlined at least as far as they go."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    return _with_headings(text, (line.strip() for line, below in pairwise(lines) if _is_rst_heading(line, below)))


def _is_rst_heading(line: str, below: str) -> bool:
    is_underlined = _RST_UNDERLINE.fullmatch(below) and len(below.rstrip()) >= len(line.strip())
    return bool(line.strip() and is_underlined and not _RST_UNDERLINE.fullmatch(line))


def parse_asciidoc(text: str) -> ParsedPage:
    """Finds the headings."""
    found = (_ASCIIDOC_TITLE.match(line) for line in text.split("\n"))
    return _with_headings(text, (match["title"].strip() for match in found if match))


def _with_headings(text: str, titles: Iterable[str]) -> ParsedPage:
    names, titles = AnchorNames(), list(titles)
    return ParsedPage(text, titles[0] if titles else None, anchors=frozenset(map(names.next_for, titles)))


PARSERS: dict[str, Callable[[str], ParsedPage]] = {
    ".rst": parse_rst,
    ".adoc": parse_asciidoc,
    ".asciidoc": parse_asciidoc,
    ".html": parse_html,
    ".htm": parse_html,
    ".txt": ParsedPage,
}
"""By the endings of files."""
