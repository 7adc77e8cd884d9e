"""Pages and pictures by their names and as text: which files are pages, their titles, what in them is not prose. Pure.

`NOT_PROSE` recognizes what is written for programs. It knows Markdown as most pages use it, not every rule of it.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

MARKDOWN_SUFFIXES = (".md", ".mdx", ".markdown")
_PAGE_SUFFIXES = (*MARKDOWN_SUFFIXES, ".rst", ".adoc", ".asciidoc", ".html", ".htm", ".txt")
_NOT_PAGES = ("requirements", "constraints", "cmakelists", "robots", "llms")
_FRONT_MATTER = (
    r"\A\ufeff?(?:---[ \t\r]*\n(?:.*?\n)??(?:---|\.\.\.)|\+\+\+[ \t\r]*\n(?:.*?\n)??\+\+\+"
    r"|\{(?:[^\n]*|.*?(?:\n|(?=\}[ \t\r]*\n[ \t\r]*\n)))\})[ \t\r]*(?:\n|\Z)"
)
_CODE = (
    r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*"
    r"(?:\n.*?^[ \t>]*(?P=fence)[`~]*[ \t\r]*$|.*\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:[^\n]|\n(?![ \t\r]*\n)){1,500}?(?<!`)(?P=ticks)(?!`)"
    r"|<!--.*?(?:-->|\Z)|\{/\*.*?(?:\*/\}|\Z)"
    r"|<(?P<element>pre|code|script|style)\b.*?(?:</(?P=element)>|\Z)"
)
_MARKUP = (
    r"</?[A-Za-z][^<>]{0,500}>"
    r"|\](?:\((?:[^()\n]|\([^()\n]{0,200}\)){0,500}\)|\[[^\[\]\n]{0,200}\])"
    r"|^[ ]{0,3}\[[^\[\]\n]{1,200}\]:[^\n]*"
    r"|\[[^\[\]\n]{1,200}\](?:\[\]|(?![(\[]))"
    r"|\b(?:https?|ftp|mailto):[^\s<>\"'()\[\]]+"
    r"|:[\w+-]{1,50}:"
    r"|\{[^{}\n]{0,300}\}"
    r"|^(?:import[ ](?:[^\n]{0,300}[ ]from[ ]|[\"'{*])|export[ ](?:const|default|function|let)\b)[^\n]*"
)
NOT_PROSE = re.compile(f"{_FRONT_MATTER}|{_CODE}|{_MARKUP}", re.MULTILINE | re.DOTALL)
"""Front matter, code, comments, tags, targets of links, `:names:`."""
UNREAD = re.compile(f"{_FRONT_MATTER}|{_CODE}", re.MULTILINE | re.DOTALL)
"""Front matter, code and comments."""
_TITLE_KEY = re.compile(r"^[ \t]*\"?title\"?[ \t]*[:=][ \t]*(?P<title>[^\n]+)$", re.MULTILINE)
_HEADING = re.compile(r"^(?:[#=][ ]+(?P<title>[^\n]+)|(?P<underlined>[^\s=#][^\n]*)\n={3,}[ \t\r]*)$", re.MULTILINE)
_LOOKED_AT = 20_000
PICTURE_FORMATS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""The picture formats that are shown: those that cannot contain scripts."""


@dataclass(frozen=True)
class PageSource:
    """A page to render. `pictures` is the address of the repository's pictures, with a trailing slash.

    Texts that are not files, such as descriptions, have no path; their line breaks are kept, as on code hosts.
    """

    text: str
    path: str
    pictures: str


def is_page(path: PurePosixPath) -> bool:
    """Tells by its name whether a file is a page."""
    suffix = path.suffix.lower()
    return suffix in _PAGE_SUFFIXES and not (suffix == ".txt" and path.name.lower().startswith(_NOT_PAGES))


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


def title_of(text: str) -> str | None:
    """Returns the title in the front matter or first heading, if it is within the first 20,000 characters."""
    text = text[:_LOOKED_AT]
    front_matter = UNREAD.match(text)
    if front_matter and (found := _TITLE_KEY.search(front_matter[0])):
        return found["title"].strip().rstrip(",").strip("\"' ") or None
    heading = _HEADING.search(UNREAD.sub("", text))
    if heading is None:
        return None
    return (heading["title"] or heading["underlined"]).strip().rstrip("# \t") or None
