"""From a file's bytes to a page."""

from pathlib import PurePosixPath

from bot.jobserver.documents.markdown import parse_markdown
from bot.jobserver.documents.page import ParsedPage
from bot.jobserver.documents.plain_formats import PARSERS

MAX_CHARACTERS = 600_000
MAX_LINE = 200_000
MARKDOWN_SUFFIXES = (".md", ".mdx", ".markdown")
PAGE_SUFFIXES = (*MARKDOWN_SUFFIXES, *PARSERS)
_NOT_PAGES = ("requirements", "constraints", "cmakelists", "robots", "llms")


def is_page(path: PurePosixPath) -> bool:
    """Tells whether a file is a page, by its name."""
    suffix = path.suffix.lower()
    return suffix in PAGE_SUFFIXES and not (suffix == ".txt" and path.name.lower().startswith(_NOT_PAGES))


def is_markdown(path: PurePosixPath) -> bool:
    """Tells whether a file is a page in Markdown or MDX, by its name."""
    return path.suffix.lower() in MARKDOWN_SUFFIXES


def decoded(data: bytes) -> str | None:
    """Returns a page's text with its line ends and byte order mark as they are; None if it is not UTF-8 text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def parse_page(path: PurePosixPath, text: str) -> ParsedPage:
    """Parses a page by the ending of its name; in time linear in its size, some seconds for the largest and worst.

    What is beyond the bounds is not parsed: the page says so in `not_parsed` and holds nothing.
    """
    if len(text) > MAX_CHARACTERS:
        return ParsedPage(text, not_parsed=f"it has more than {MAX_CHARACTERS:,} characters")
    if any(len(line) > MAX_LINE for line in text.split("\n")):
        return ParsedPage(text, not_parsed=f"a line has more than {MAX_LINE:,} characters")
    suffix = path.suffix.lower()
    if suffix in PARSERS:
        return PARSERS[suffix](text)
    try:
        return parse_markdown(text, mdx=suffix == ".mdx")
    except RecursionError:
        return ParsedPage(text, not_parsed="it is nested too deeply")
