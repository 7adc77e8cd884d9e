"""Parses the prompts that the built-in editor understands. Pure.

    Replace "x" with "y"
    Add a page called X with the text: ...
    Fix the typos, or: Fix the typos slowly
    Undo

A prompt is understood as a whole or not at all: half of what somebody asked for may be the opposite of what they meant.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Replace:
    """Replaces words on all pages."""

    old: str
    new: str


@dataclass(frozen=True)
class AddPage:
    """Adds a page."""

    title: str
    text: str


@dataclass(frozen=True)
class FixTypos:
    """Corrects what the `typos` program finds; slowly, so that somebody can try to stop it."""

    slowly: bool = False


@dataclass(frozen=True)
class Undo:
    """Takes back the job's last change."""


Deed = Replace | AddPage | FixTypos | Undo

_LIKE_OTHERS = str.maketrans(
    dict.fromkeys("\u00ab\u00bb\u201c\u201d\u201e\u201f\u2039\u203a\uff02", '"')
    | dict.fromkeys("\u2018\u2019\u201a\u201b\uff07", "'")
    | dict.fromkeys("\u00a0\u2007\u202f\u3000", " ")
)
"""Signs of other keyboards, each for one sign, so that all positions stay."""
_BEFORE = (
    r"\s*(?:(?:also|and|can you|could you|hello|hey|hi|next|now|pagehand|please|then|would you)\b[\s,!.:]{1,9}){0,5}"
)
_EVERYWHERE = (
    r"(?:\s(?:everywhere|(?:in|on|across|throughout)(?:\s(?:all|every|each|the|our|of|whole|entire)){0,4}"
    r"\s(?:docs?|documentation|documents?|files?|handbook|pages?|repository|text)))?"
)
_AFTER = r"(?:[\s,]{1,9}(?:please|thanks|thank you))?[\s.!?]*"


def _words(name: str) -> str:
    return (
        rf"(?:\"(?P<{name}>[^\"\n]{{0,200}})\"|`(?P<{name}_in_code>[^`\n]{{0,200}})`"
        rf"|'(?P<{name}_in_single>[^\"\n]{{0,200}}?)'(?!\w)|(?P<{name}_bare>[^\s\"'`]{{1,60}}))"
    )


_REPLACE = re.compile(
    rf"{_BEFORE}(?P<verb>replace|change|substitute)\s"
    rf"(?P<which>(?:(?:all|every|each|the|of|words?|terms?|phrase|text|occurrences?)\s){{0,5}}){_words('old')}"
    rf"\s{{1,9}}(?:with|by|to|into|for)\s{{1,9}}{_words('new')}{_EVERYWHERE}{_AFTER}",
    re.IGNORECASE,
)
_ADD_PAGE = re.compile(
    rf"{_BEFORE}(?:add|create|make|write)\s(?:(?:a|an|another|new|the)\s){{0,3}}page\s"
    r"(?:(?:called|named|titled|with the title)\s)?(?:\"(?P<title>[^\"\n]{1,100})\"|(?P<title_bare>[^\"\n]{1,100}?))"
    r"\s(?:containing|with)\s(?:(?:the|this|following)\s){0,2}(?:text|content|body)\s{0,9}:?\s{0,9}(?P<text>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_FIX_TYPOS = re.compile(
    rf"{_BEFORE}(?:(?:check|correct|fix|repair)\s(?:and\s(?:correct|fix)\s)?(?:(?:all|any|every|our|the)\s){{0,3}}"
    r"(?:typos?|spelling(?:\s(?:mistakes?|errors?))?|misspell(?:ings?|ed\swords))|spell-?check)"
    rf"{_EVERYWHERE}(?P<slowly>,?\sslowly)?{_AFTER}",
    re.IGNORECASE,
)
_UNDO = re.compile(
    rf"{_BEFORE}(?:undo|revert|take\sback)(?:\s(?:that|this|it|the|your|my|last|latest|changes?|edits?)){{0,4}}{_AFTER}",
    re.IGNORECASE,
)


def parse(prompt: str) -> Deed | None:
    """Returns what a prompt asks for; None if it is not understood."""
    plain = prompt.translate(_LIKE_OTHERS)
    if found := _REPLACE.fullmatch(plain):
        return _replace(prompt, found)
    if found := _ADD_PAGE.fullmatch(plain):
        title, text = " ".join(_part(prompt, found, "title").split()), _unquoted(_part(prompt, found, "text"))
        return AddPage(title, text) if title and text else None
    if found := _FIX_TYPOS.fullmatch(plain):
        return FixTypos(slowly=found["slowly"] is not None)
    return Undo() if _UNDO.fullmatch(plain) else None


def _replace(prompt: str, found: re.Match[str]) -> Replace | None:
    old, new = _part(prompt, found, "old").strip(), _part(prompt, found, "new").strip()
    is_bare = found["old_bare"] is not None or found["new_bare"] is not None
    new = new.rstrip(".,!?") if found["new_bare"] else new
    is_a_thing = found["which"].lower().endswith("the ")  # "the logo", not "the word logo"
    if is_bare and (found["verb"].lower() == "change" or is_a_thing):
        return None
    return Replace(old, new) if old and old != new else None


def _part(prompt: str, found: re.Match[str], name: str) -> str:
    """Returns a part as it was written, in whichever quotation marks."""
    group = next(key for key, value in found.groupdict().items() if key.startswith(name) and value is not None)
    return prompt[slice(*found.span(group))]


def _unquoted(text: str) -> str:
    text = text.strip()
    plain = text.translate(_LIKE_OTHERS)
    is_quoted = len(text) > 1 and plain[0] == plain[-1] == '"' and plain.count('"') == 2  # noqa: PLR2004 - a pair
    return text[1:-1].strip() if is_quoted else text
