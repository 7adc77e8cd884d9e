"""What a page is made of. All positions are characters of the page's text; lines count from 1."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True)
class Span:
    """The characters from `start` to before `end`."""

    start: int
    end: int


class RegionKind(StrEnum):
    """What stands in a place that is not prose; in the words of a message: "3 places in code"."""

    CODE = "code"
    LINK = "links"
    MARKUP = "markup"
    FRONT_MATTER = "front matter"


@dataclass(frozen=True)
class Region:
    """A place that is not prose, and why."""

    span: Span
    kind: RegionKind


class LinkKind(StrEnum):
    """Where a link leads: `absolute` has a scheme or a host, `anchor` stays on the page."""

    ABSOLUTE = "absolute"
    ANCHOR = "anchor"
    RELATIVE = "relative"


@dataclass(frozen=True)
class Link:
    """A link or an image. `target` is as it was written, without title; a path from the root (`/x`) is relative."""

    target: str
    line: int
    kind: LinkKind
    is_image: bool = False


@dataclass(frozen=True)
class Heading:
    """A heading. `anchor` is its explicit id, or else the one that GitHub gives it; `content` is its text's place."""

    level: int
    title: str
    anchor: str
    line: int
    content: Span
    has_explicit_anchor: bool = False


@dataclass(frozen=True)
class FrontMatter:
    """The block of YAML or TOML at a page's beginning. `error` says in words why it has no values."""

    span: Span
    text: str
    values: Mapping[str, object] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Page:
    """A parsed page. `anchors` holds explicit ids and those of headings; `not_parsed` says what was left out."""

    text: str
    title: str | None = None
    front_matter: FrontMatter | None = None
    headings: tuple[Heading, ...] = ()
    anchors: frozenset[str] = frozenset()
    links: tuple[Link, ...] = ()
    prose: tuple[Span, ...] = ()
    """What is text for people and nothing else, in order; names of things in it are found by `names`."""
    regions: tuple[Region, ...] = ()
    not_parsed: str = ""
