"""Parses Markdown within a paragraph by markdown-it's rules, and records the position of each piece.

markdown-it keeps no positions within a paragraph, so this parser runs the same rules and records their spans.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from markdown_it import MarkdownIt, rules_inline
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

_IMAGE_MARK = 2
"""The length of `![`."""
_NAMED_BY_LABEL = re.compile(r"\]\[[^\[\]\n]{0,200}+\]|\[\^[^\[\]\s]{1,100}+\]")
"""A label after a text (`[text][label]`), or of a footnote, even if it is defined in another file."""
_COLLAPSED = re.compile(r"\[[^\[\]\n]{1,200}+\]\[\]")
_Rule = Callable[[StateInline, bool], bool]
_PROSE_RULES: frozenset[_Rule] = frozenset(
    (rules_inline.text, rules_inline.newline, rules_inline.emphasis.tokenize, rules_inline.strikethrough.tokenize,
     rules_inline.escape)
)  # fmt: skip


class ContentSpan(NamedTuple):
    """Characters of a paragraph's content, from `start` to before `end`."""

    start: int
    end: int

    def moved(self, by: int) -> "ContentSpan":
        return ContentSpan(self.start + by, self.end + by)


@dataclass(frozen=True)
class FoundLink:
    """A link or an image, and the position where it starts."""

    target: str
    start: int
    is_image: bool


@dataclass
class Recording:
    """Spans in a paragraph's content: `prose` with emphasis marks, `code`, and `targets` of links."""

    prose: list[ContentSpan] = field(default_factory=list)
    code: list[ContentSpan] = field(default_factory=list)
    targets: list[ContentSpan] = field(default_factory=list)
    links: list[FoundLink] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)

    def take(self, inner: "Recording", moved: int) -> None:
        self.prose += [place.moved(moved) for place in inner.prose]
        self.code += [place.moved(moved) for place in inner.code]
        self.targets += [place.moved(moved) for place in inner.targets]
        self.links += [FoundLink(link.target, link.start + moved, link.is_image) for link in inner.links]


class RecordingInline(ParserInline):
    """Parses as its base class does, and records spans."""

    def __init__(self) -> None:
        super().__init__()
        self._recording = Recording()
        self._of_image = Recording()
        self._label_end = 0

    def record(self, content: str, parser: MarkdownIt, env: EnvType) -> Recording:
        """Parses a paragraph's content."""
        self.parse(content, parser, env, [])
        found = self._of_image
        for match in (*_NAMED_BY_LABEL.finditer(content), *_COLLAPSED.finditer(content)):
            found.targets.append(ContentSpan(match.start() + content.startswith("]", match.start()), match.end()))
        return found

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        """Parses a paragraph, or an image's description, which has its own recording."""
        outer, self._recording = self._recording, Recording()
        self._recording.tokens = super().parse(src, md, env, tokens)
        self._of_image, self._recording = self._recording, outer
        return tokens

    def tokenize(self, state: StateInline) -> None:
        """Does what the base's method does, rule for rule."""
        rules = self.ruler.getRules("")
        end, deepest = state.posMax, state.md.options["maxNesting"]
        while state.pos < end:
            start = state.pos
            rule = next((rule for rule in rules if rule(state, False)), None) if state.level < deepest else None
            if rule is None:
                state.append_pending(state.src[start])
                state.pos = start + 1
            self._note(rule, state, ContentSpan(start, state.pos))
        if state.pending:
            state.pushPending()
        self._label_end = end

    def _note(self, rule: _Rule | None, state: StateInline, place: ContentSpan) -> None:
        if rule is None or rule in _PROSE_RULES:
            self._recording.prose.append(place)
        elif rule is rules_inline.backtick:
            self._recording.code.append(place)
        elif rule is rules_inline.image:
            self._recording.take(self._of_image, place.start + _IMAGE_MARK)
            self._note_target(state, "image", "src", place, place.start + _IMAGE_MARK + len(state.tokens[-1].content))
        elif rule is rules_inline.link:
            self._note_target(state, "link_open", "href", place, self._label_end)
        elif rule is rules_inline.autolink:
            self._note_target(state, "link_open", "href", place, place.start)

    def _note_target(self, state: StateInline, kind: str, attribute: str, place: ContentSpan, label_end: int) -> None:
        token = next(token for token in reversed(state.tokens) if token.type == kind)
        target = str(token.attrs.get(attribute, ""))
        self._recording.links.append(FoundLink(target, place.start, is_image=kind == "image"))
        is_named_by_its_text = state.src[label_end : place.end] in {"]", "][]"}
        start = place.start if is_named_by_its_text else label_end
        self._recording.targets.append(ContentSpan(start, place.end))
