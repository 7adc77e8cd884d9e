"""The parts of a page. Positions are indexes into the page's text; lines are numbered from 1."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

_RECORD = re.compile(
    r"(?:changelogs?|changes|history|news|releases?|release-notes?|whats-new|blog|-?posts|updates)"
    r"|(?:changelog|changes|release-notes|releases?-v?\d)-?.{0,80}"
)
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Span:
    """The characters from `start` to before `end`."""

    start: int
    end: int


class RegionKind(StrEnum):
    """Why a region is not prose, in the words of messages: "3 places in code"."""

    CODE = "code"
    LINK = "links"
    MARKUP = "markup"
    FRONT_MATTER = "front matter"


@dataclass(frozen=True)
class Region:
    """A part of a page that is not prose, and why."""

    span: Span
    kind: RegionKind


class LinkKind(StrEnum):
    """The kind of a link: `absolute` has a scheme or a host, `anchor` stays on the page."""

    ABSOLUTE = "absolute"
    ANCHOR = "anchor"
    RELATIVE = "relative"


@dataclass(frozen=True)
class Link:
    """A link or an image. `target` is as written, without title; a path from the site's root (`/x`) is relative."""

    target: str
    line: int
    kind: LinkKind
    is_image: bool = False


@dataclass(frozen=True)
class Heading:
    """A heading. `anchor` is its explicit id, or else the one that GitHub generates; `content` is its text's span."""

    level: int
    title: str
    anchor: str
    line: int
    content: Span
    has_explicit_anchor: bool = False


@dataclass(frozen=True)
class FrontMatter:
    """The block of YAML or TOML at the start of a page. `error` says why it has no values."""

    span: Span
    text: str
    values: Mapping[str, object] = field(default_factory=dict)
    error: str = ""

    @property
    def title(self) -> str | None:
        title = self.values.get("title")
        return (title.strip() or None) if isinstance(title, str) else None


@dataclass(frozen=True)
class ParsedPage:
    """A parsed page. `anchors` are explicit ids and those of headings; `not_parsed` says what was skipped.

    Only Markdown pages have front matter, headings, prose and regions.
    """

    text: str
    title: str | None = None
    front_matter: FrontMatter | None = None
    headings: tuple[Heading, ...] = ()
    anchors: frozenset[str] = frozenset()
    links: tuple[Link, ...] = ()
    prose: tuple[Span, ...] = ()
    """Text for readers only, in order. It can contain names such as identifiers, which `words` finds."""
    regions: tuple[Region, ...] = ()
    not_parsed: str = ""


def line_starts(text: str) -> list[int]:
    """Returns the position at which each line of a text starts."""
    return [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]


def line_end(text: str, position: int) -> int:
    """Returns the position of the line feed that ends a line, or of the end of the text."""
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def is_record(path: PurePosixPath) -> bool:
    """Tells whether a page is about the past, such as a changelog, release notes, or a blog post."""
    parts = (*path.parts[:-1], path.stem)
    return any(_RECORD.fullmatch(part.casefold().replace("_", "-")) for part in parts)


def slug(title: str) -> str:
    """Returns a title in the form of a file name: lower-case letters and digits of any script, joined by hyphens."""
    return _BETWEEN_WORDS.sub("-", title.casefold()).strip("-")[:60].rstrip("-")


def heading_anchor(title: str) -> str:
    """Returns the anchor that GitHub, Mintlify and MkDocs generate for the first heading with this title."""
    return _NOT_IN_ANCHORS.sub("", title.strip().lower()).replace(" ", "-")


class AnchorNames:
    """Numbers repeated headings, as GitHub does."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def next_for(self, title: str) -> str:
        anchor = heading_anchor(title)
        number = self._seen[anchor]
        self._seen[anchor] += 1
        return f"{anchor}-{number}" if number else anchor
