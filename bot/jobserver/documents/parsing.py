"""Parses pages: Markdown fully; of other formats only title, links and anchors."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import PurePosixPath

from bot.jobserver.documents.markdown import anchors_and_links, parse_markdown
from bot.jobserver.documents.masking import mask
from bot.jobserver.documents.page import AnchorNames, Link, ParsedPage, line_starts

_RST_UNDERLINE = re.compile(r"(?P<sign>[=\-`:.'\"~^_*+#<>])(?P=sign){2,}+[ \t\r]*")
_ASCIIDOC_TITLE = re.compile(r"={1,6}[ \t]++(?P<title>\S.*)")
_HTML_TITLE = re.compile(r"<title[^>\n]{0,200}+>([^<]{1,500}+)<", re.IGNORECASE)

_LOADED = re.compile(r"<(?:script|link|iframe)\b", re.IGNORECASE)
"""Elements whose links readers do not follow, and whose targets a build often creates."""
MAX_CHARACTERS = 600_000
MAX_LINE = 200_000
MARKDOWN_SUFFIXES = (".md", ".mdx", ".markdown")
PAGE_SUFFIXES = (*MARKDOWN_SUFFIXES, ".rst", ".adoc", ".asciidoc", ".html", ".htm", ".txt")
_NOT_PAGES = ("requirements", "constraints", "cmakelists", "robots", "llms")


def is_page(path: PurePosixPath) -> bool:
    """Tells by its name whether a file is a page."""
    suffix = path.suffix.lower()
    return suffix in PAGE_SUFFIXES and not (suffix == ".txt" and path.name.lower().startswith(_NOT_PAGES))


def is_markdown(path: PurePosixPath) -> bool:
    """Tells by its name whether a file is a page in Markdown or MDX."""
    return path.suffix.lower() in MARKDOWN_SUFFIXES


def decoded(data: bytes) -> str | None:
    """Returns a page's text with its line ends and byte order mark; None if it is not UTF-8 text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def parse_page(path: PurePosixPath, text: str) -> ParsedPage:
    """Parses a page by its file type. Takes linear time, a few seconds for the largest and worst pages.

    A page that exceeds the limits is not parsed; `not_parsed` says so.
    """
    if len(text) > MAX_CHARACTERS:
        return ParsedPage(text, not_parsed=f"it has more than {MAX_CHARACTERS:,} characters")
    if any(len(line) > MAX_LINE for line in text.split("\n")):
        return ParsedPage(text, not_parsed=f"a line has more than {MAX_LINE:,} characters")
    suffix = path.suffix.lower()
    if suffix in _PARSERS:
        return _PARSERS[suffix](text)
    try:
        return parse_markdown(text, mdx=suffix == ".mdx")
    except RecursionError:
        return ParsedPage(text, not_parsed="it is nested too deeply")


def _parse_html(text: str) -> ParsedPage:
    """Finds the title, links and anchors in tags outside comments, scripts and code."""
    starts = line_starts(text)
    title = _HTML_TITLE.search(text)
    links, anchors = list[Link](), set[str]()
    for tag in mask(text, start=0, mdx=False).tags:
        more_anchors, more_links = anchors_and_links(text, tag, bisect_right(starts, tag.start), html=True)
        anchors |= more_anchors
        links += [] if _LOADED.match(text, tag.start) else more_links
    return ParsedPage(text, title[1].strip() if title else None, anchors=frozenset(anchors), links=tuple(links))


def _parse_rst(text: str) -> ParsedPage:
    """Finds the headings: lines with an underline that is at least as long."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    return _with_headings(text, (line.strip() for line, below in pairwise(lines) if _is_rst_heading(line, below)))


def _is_rst_heading(line: str, below: str) -> bool:
    is_underlined = _RST_UNDERLINE.fullmatch(below) and len(below.rstrip()) >= len(line.strip())
    return bool(line.strip() and is_underlined and not _RST_UNDERLINE.fullmatch(line))


def _parse_asciidoc(text: str) -> ParsedPage:
    """Finds the headings."""
    found = (_ASCIIDOC_TITLE.match(line) for line in text.split("\n"))
    return _with_headings(text, (match["title"].strip() for match in found if match))


def _with_headings(text: str, titles: Iterable[str]) -> ParsedPage:
    names, titles = AnchorNames(), list(titles)
    return ParsedPage(text, titles[0] if titles else None, anchors=frozenset(map(names.next_for, titles)))


_PARSERS: dict[str, Callable[[str], ParsedPage]] = {
    ".rst": _parse_rst,
    ".adoc": _parse_asciidoc,
    ".asciidoc": _parse_asciidoc,
    ".html": _parse_html,
    ".htm": _parse_html,
    ".txt": ParsedPage,
}
"""By the endings of files."""
