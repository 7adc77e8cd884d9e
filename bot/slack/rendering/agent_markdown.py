"""Makes an agent's Markdown safe for Slack's `markdown` block. Pure.

In this block, Slack recognizes mentions and `<...>` markup, turns images into links, and has no `verbatim` option. A
link is kept if its text does not name a different URL, and is rewritten in its plainest form. How Slack parses
everything else is unknown, so anything that could notify somebody or become a link is broken up with a zero-width
character, inside and outside of code. Everything else is unchanged.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from bot.runtime.text import displayable
from bot.slack.rendering.markdown_links import Code, MarkdownLink, find_links_in_code, find_parts
from bot.slack.rendering.text import BREAK, is_beginning, looks_like_an_address, safe_url, with_plain_addresses

MAX_GROWTH = 2_000
"""Characters by which addresses of references may lengthen a text; beyond it these links are words."""

_MENTION = re.compile(r"<(?=[!@#][A-Za-z^])|@(?=(?:here|channel|everyone|group)\b)", re.IGNORECASE)
_AUTOLINK = re.compile(r"<(?=[a-zA-Z][a-zA-Z0-9+.-]{0,31}:)")
_LABELLED = re.compile(r"<(?=[a-zA-Z][a-zA-Z0-9+.-]{0,30}:[^<>|\n]{0,3000}\|)")
_ANCHOR = re.compile(r"<(?=a\s)", re.IGNORECASE)
_MARKUP = re.compile(r"[\[\]\\`<>|]|&#?\w{1,40};")
_FENCE = re.compile(r"^ {0,3}(`{3,100}(?!`)|~{3,100}(?!~))")
"""A longer one is left open: to close it would double the text."""
_ROUNDS = 4
_CONTAINERS = " \t>*+-.)0123456789"
"""What may precede a paragraph on its line: the markers of quotations and lists."""


@dataclass(frozen=True)
class _Words:
    text: str


@dataclass(frozen=True)
class _Literal:
    """Code: its addresses are nobody's links."""

    text: str


@dataclass(frozen=True)
class _Link:
    """A link, or an address, that was found honest."""

    text: str


_Piece = _Words | _Literal | _Link


def defused(text: str) -> str:
    """Returns Markdown for a `markdown` block that mentions nobody, and whose links show where they lead. A fence that
    was cut open is closed.
    """
    text = _with_harmless_links(displayable(text))
    for pattern in (_LABELLED, _ANCHOR, _MENTION):
        text = pattern.sub(lambda found: f"{found[0]}{BREAK}", text)
    open_fence = _open_fence(text)
    return f"{text}\n{open_fence}" if open_fence else text


def _with_harmless_links(text: str) -> str:
    """Repeats until nothing changes, because breaking up a link can free a backtick in its URL, which can turn code
    into a link.
    """
    for _ in range(_ROUNDS):
        made = "".join(_harmless(_pieces(text)))
        if made == text:
            return text
        text = made
    return text.replace("<", f"<{BREAK}").replace("](", f"]{BREAK}(")


def markdown_pieces(text: str, limit: int) -> list[str]:
    """Splits Markdown into pieces of about `limit` characters, between lines if possible. A fence continues in the next
    piece.
    """
    made, piece = [], ""
    for line in _lines_up_to(text.strip(), limit):
        if piece and len(piece) + len(line) > limit:
            fence = _open_fence(piece)
            made.append(f"{piece}{fence}" if fence else piece)
            piece = f"{fence}\n" if fence else ""
        piece += line
    return [*made, piece] if piece.strip() else made


def _lines_up_to(text: str, limit: int) -> list[str]:
    lines = text.splitlines(keepends=True)
    return [line[at : at + limit] for line in lines for at in range(0, len(line), limit)]


def _pieces(text: str) -> Iterator[_Piece]:
    at = grown = 0
    for part in find_parts(text):
        yield _Words(text[at : part.start])
        source = text[part.start : part.end]
        at = part.end
        match part:
            case Code():
                yield from _code(source)
            case MarkdownLink():
                made = _honest(part, source)
                by_reference = source.endswith("]")
                grown += len(made.text) * by_reference
                yield _Words(source) if by_reference and grown > MAX_GROWTH else made
    yield _Words(text[at:])


def _code(text: str) -> Iterator[_Piece]:
    """Returns code, in which honest and plain links are unchanged."""
    at = 0
    for link in find_links_in_code(text):
        source = text[link.start : link.end]
        if _honest(link, source) == _Link(source):
            yield _Literal(text[at : link.start])
            yield _Link(source)
            at = link.end
    yield _Literal(text[at:])


def _honest(link: MarkdownLink, source: str) -> _Piece:
    """Returns the link if its text does not hide where it leads; otherwise its text and its URL."""
    label, url = " ".join(displayable(link.label).split()), safe_url(link.address)
    if source.startswith("<"):
        return _Words(source) if url is None else _Link(f"<{url}>")
    if url is None:
        return _Words(label)
    url = _MENTION.sub("%40", url)
    if not label:
        return _Words(url)
    if _MARKUP.search(label) or (looks_like_an_address(label) and not is_beginning(label, url)):
        return _Words(f"{label} ({url})")
    return _Link(f"[{label}]({url.replace('(', '%28').replace(')', '%29')})")


def _harmless(pieces: Iterable[_Piece]) -> Iterator[str]:
    """Returns the pieces, in which only honest links are left."""
    for kind, group in groupby(pieces, type):
        text = "".join(piece.text for piece in group)
        if kind is _Words:
            text = _AUTOLINK.sub(f"<{BREAK}", with_plain_addresses(text, BREAK))
        yield text if kind is _Link else "\n".join(map(_without_links, text.split("\n")))


def _without_links(line: str) -> str:
    """The line with what ends a link's words broken up, and what ends the name of a reference."""
    line = line.replace("](", f"]{BREAK}(")
    before, ends, _ = line.partition("]:")
    opened = before.find("[")
    if ends and (opened < 0 or not before[:opened].strip(_CONTAINERS)):
        return line.replace("]:", f"]{BREAK}:")
    return line


def _open_fence(text: str) -> str:
    """Returns the fence that is still open at the end of a text; empty if there is none."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
    return fence
