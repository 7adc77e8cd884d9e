"""Finds the links of a Markdown text: their places, what they show and where they lead. Pure.

markdown-it parses the text; its rules for links and code are wrapped to note positions. It parses the worst texts at
some 70,000 characters a second, so it gets only as much as a few messages contain.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import idna
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

# Hosts in a form that is safe to show: in ASCII, where no character of another script looks like a Latin one. Pure.
# Sources: UTS 46 (IDNA), and the WHATWG URL standard for what browsers take for a number.

MAX_HOST = 253
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?")
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?")


def ascii_host(host: str) -> str | None:
    """Returns the host in ASCII, other scripts as punycode; None if it disguises its target or is not a host.

    Addresses must be plain, such as `127.0.0.1` and `[::1]`: browsers also accept `2130706433` and `0x7f.1`.
    """
    if len(host) > MAX_HOST:
        return None
    if host.startswith("["):
        return host if _is_plain_ipv6(host) else None
    if not host.isascii():
        host = _punycode(host)
    if not _NAME.fullmatch(host) or (_NUMBER.fullmatch(host) and not _is_plain_ipv4(host)):
        return None
    return host


def _punycode(host: str) -> str:
    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode("ascii")
    except UnicodeError:
        return ""


def _is_plain_ipv4(host: str) -> bool:
    try:
        return bool(ipaddress.IPv4Address(host))
    except ValueError:
        return False


def _is_plain_ipv6(host: str) -> bool:
    try:
        return host.endswith("]") and "%" not in host and bool(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return False


# Addresses in running text: whether text names one, whether it is a given one, and how they are shown. Pure.

_DOTS = ".\u00b7\u0660\u06f0\u0701\u0702\u2027\u2219\u22c5\u3002\u30fb\ua4f8\ua60e"
"""Characters that look like the dot of a host once decomposed (Unicode Technical Standard 39, and IDNA's own)."""
_ADDRESS = re.compile(rf"://|\w\s{{0,3}}[{_DOTS}][^\W\d_]|(?:\d{{1,3}}[{_DOTS}]){{3}}\d")
_EMPHASIS = str.maketrans("", "", "*_~")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE)
_BARE = re.compile(r"(?P<scheme>https?:)//(?P<authority>[^\s/?#<>\"'`()\[\]|]*)", re.IGNORECASE)
_PLAIN_HOST = re.compile(r"[A-Za-z0-9._-]*(?::[0-9]*)?")
_AFTER_HOST = "*_~.,;:!"
"""ASCII characters that may follow a host and do not belong to it."""


def looks_like_an_address(words: str) -> bool:
    """Returns whether people may read it as an address, even with invisible or look-alike characters."""
    # Each by itself: normalizing a text takes quadratic time in its accents, and here their order is the same.
    decomposed = "".join(unicodedata.normalize("NFKD", sign) for sign in words)
    seen = "".join(sign for sign in decomposed if unicodedata.category(sign) not in {"Mn", "Me", "Cf"})
    return bool(_ADDRESS.search(seen) or _ADDRESS.search(seen.translate(_EMPHASIS)))


def is_beginning(words: str, url: str) -> bool:
    """Returns whether text that looks like an address is the beginning of `url`, including its whole host."""
    named, address = (_without_scheme(each).rstrip("/").lower() for each in (words, url))
    rest = address.removeprefix(named)
    return words.isascii() and address.startswith(named) and (not rest or rest[0] in "/?#")


def _without_scheme(address: str) -> str:
    found = _SCHEME.match(address)
    return address[found.end() :] if found else address


def with_plain_addresses(text: str, separator: str) -> str:
    """Returns the text with the hosts of its addresses in ASCII. An address that disguises its host, such as with a
    name and an `@`, is broken up by the separator.
    """
    return _BARE.sub(lambda found: _plain(found, separator), text)


def _plain(found: re.Match[str], separator: str) -> str:
    authority = found["authority"].rstrip(_AFTER_HOST)
    after = found["authority"][len(authority) :]
    plain = _PLAIN_HOST.match(authority)
    host, rest = (plain[0], authority[plain.end() :]) if plain else ("", authority)
    if not rest:
        return found[0]
    if host and _is_foreign_punctuation(rest[0]):
        return f"{found['scheme']}//{host} {rest}{after}"
    name, colon, port = authority.partition(":")
    spelled = None if port.strip("0123456789") else ascii_host(name)
    if spelled is None:
        return found[0].replace("//", f"{separator}//", 1)
    return f"{found['scheme']}//{spelled}{colon}{port}{after}"


def _is_foreign_punctuation(sign: str) -> bool:
    """Recognizes, for example, the ideographic full stop: it ends sentences, but browsers read it as a dot."""
    return not sign.isascii() and unicodedata.category(sign).startswith("P")
