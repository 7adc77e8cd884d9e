"""Finds the links of a Markdown text: their places, what they show and where they lead. Pure.

markdown-it parses the text; its rules for links and code are wrapped to note positions. It parses the worst texts at
some 70,000 characters a second, so it gets only as much as a few messages contain.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, autolink, backtick, image, link
from markdown_it.token import Token

MAX_TEXT = 20_000
"""Characters that are parsed; in a longer text no links are found."""

_SPAN = "span"
_LINK_KINDS = frozenset({"link_open", "image"})
_LITERAL_KINDS = frozenset({"text", "code_inline"})
_Rule = Callable[[StateInline, bool], bool]


@dataclass(frozen=True)
class MarkdownLink:
    """A link or an image, from `start` to `end` of the text: what it shows, without markup, and its target."""

    start: int
    end: int
    label: str
    address: str


@dataclass(frozen=True)
class Code:
    """Literal text: the inside of a fence, an indented block, or code within a line."""

    start: int
    end: int


Part = MarkdownLink | Code


class _Parser(MarkdownIt):
    """Leaves addresses as they are written; others decide which ones are safe."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the parser's name
        return url

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802 - the parser's signature
        return True


def find_parts(text: str) -> list[Part]:
    """Returns the links and the code of a text, in order and without overlaps."""
    if len(text) > MAX_TEXT:
        return []
    lines = text.split("\n")
    starts = _starts(lines)
    found: list[Part] = []
    taken = [0] * len(lines)
    for token in _PARSER.parse(text):
        if token.map is None:
            continue
        if token.type == "inline":
            places = _places(token, lines, starts, taken)
            found += [] if places is None else _parts(token.children or (), places)
        elif token.type in {"fence", "code_block"}:
            fenced = token.type == "fence"
            found.append(Code(starts[token.map[0] + fenced], starts[max(token.map[1] - fenced, token.map[0] + fenced)]))
    return sorted(found, key=lambda part: part.start)


def find_links_in_code(text: str) -> list[MarkdownLink]:
    """Returns what would be links if no text were code."""
    if len(text) > MAX_TEXT:
        return []
    (token,) = _PARSER.parseInline(text)
    parts = _parts(token.children or (), range(len(text) + 1))
    return [part for part in parts if isinstance(part, MarkdownLink)]


def _starts(lines: Sequence[str]) -> list[int]:
    """Returns where each line starts, and where the last one ends."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] -= 1
    return starts


def _places(token: Token, lines: Sequence[str], starts: Sequence[int], taken: list[int]) -> list[int] | None:
    """Returns the position in the text of each character of an inline token; None if the text is not there verbatim."""
    places: list[int] = []
    first = token.map[0] if token.map else 0
    for number, content in enumerate(token.content.split("\n"), first):
        at = lines[number].find(content, taken[number]) if number < len(lines) else -1
        if at < 0:
            return None
        taken[number] = at + len(content)
        places += range(starts[number] + at, starts[number] + taken[number] + 1)
    return places


def _parts(children: Sequence[Token], places: Sequence[int]) -> Iterator[Part]:
    """Yields the outermost links and the code of a line."""
    index = 0
    while index < len(children):
        token = children[index]
        start, end = token.meta.get(_SPAN, (0, 0))
        if token.type == "link_open":
            inside = _inside(children, index)
            yield MarkdownLink(places[start], places[end], _rendered(inside), str(token.attrs["href"]))
            index += len(inside)
        elif token.type == "image":
            yield MarkdownLink(places[start], places[end], _rendered(token.children or ()), str(token.attrs["src"]))
        elif token.type == "code_inline":
            around = len(token.markup)
            yield Code(places[start + around], places[end - around])
        index += 1


def _inside(children: Sequence[Token], opened: int) -> Sequence[Token]:
    """Returns the tokens of a link's label; links do not nest."""
    for index in range(opened + 1, len(children)):
        if children[index].type == "link_close":
            return children[opened + 1 : index]
    return children[opened + 1 :]


def _rendered(tokens: Sequence[Token]) -> str:
    return "".join(map(_words, tokens))


def _words(token: Token) -> str:
    if token.type == "image":
        return _rendered(token.children or ())
    if token.type in _LITERAL_KINDS:
        return token.content
    return " " if token.type in {"softbreak", "hardbreak"} else ""


def _noting(rule: _Rule) -> _Rule:
    """Wraps a rule, so that its tokens have their positions in the line."""

    def noting(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
        start, before = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        for token in state.tokens[before:]:
            if token.type in _LINK_KINDS or token.type == "code_inline":
                token.meta[_SPAN] = (start, state.pos)
                break
        return True

    return noting


def _parser() -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False}).enable(["table", "strikethrough"])
    rules = {"link": link, "image": image, "autolink": autolink, "backticks": backtick}
    for name, rule in rules.items():
        parser.inline.ruler.at(name, _noting(rule))
    return parser


_PARSER = _parser()
