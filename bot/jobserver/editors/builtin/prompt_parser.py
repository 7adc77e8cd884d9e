"""Parses the prompts that the built-in editor understands into lists of edits.

    Replace "x" with "y" [in docs/start.md | in the guides]
    Fix the spelling [in ...]
    Add a page called X [in ...] with the text: ...
    Add a section called X to PAGE with the text: ...
    Rename PAGE to X

Edits are joined by "and", "also", "then", full stops or new lines. Text after "with the text:" ends at its closing
quotation mark, or at the end of the prompt. If any part of a prompt is not understood, it gives no edits: half of what
somebody asked for may be the opposite of what they meant.
"""

import re
from collections.abc import Callable

from bot.jobserver.editors.builtin.edits import (
    AddPage,
    AddSection,
    Edit,
    FixSpelling,
    Rename,
    RenamePage,
    Replace,
)


def _quoted(name: str) -> str:
    return (
        rf"(?:[\"“”„](?P<{name}_double>[^\"“”„]*)[\"“”]|`(?P<{name}_code>[^`]*)`"
        rf"|['\u2018\u2019](?P<{name}_single>[^\n]*?)['\u2019](?!\w))"
    )


_CONNECTOR = re.compile(
    r"(?:[\s,;.!]|[-*•](?=\s)|\d{1,2}[.)](?=\s)|(?:and|also|then|please|finally|next)\b)+", re.IGNORECASE
)
_GAP = r"[ \t]{1,20}+"  # bounded, and never given back: a long run of spaces is tried once
_CHANGE = r"(?:replace|change|substitute|update)"
_VERB = rf"(?:{_CHANGE}|rename|retitle|fix|correct|repair|check|add|create|write)"
_STOP = r"(?=[ \t]*(?:\Z|\n|[.,;!](?:\s|\Z)|\s(?:and|also|then)\b|\swith\b))"
_WORDS = rf"[^\s,;\"“”]{{1,200}}?(?:{_GAP}(?!(?:and|also|then|with)\b)[^\s,;\"“”]{{1,200}}?){{0,5}}?"
_PREPOSITION = r"(?:in|within|inside|under|throughout|across|to|of)"
_WHERE = (
    rf"(?:{_GAP}everywhere|{_GAP}{_PREPOSITION}{_GAP}"
    rf"(?:{_quoted('where')}|(?P<where>{_WORDS}){_STOP}))?"
)
_SPELLING = rf"(?:spelling(?:{_GAP}(?:mistakes?|errors?))?|typos?|misspellings?|misspelled{_GAP}words)"
_ARTICLE = rf"(?:(?:a|an|the|one|another|new){_GAP}){{0,3}}"
_CALLED = rf"(?:{_GAP}(?:called|named|titled|entitled|with{_GAP}the{_GAP}title))?"
_TEXT = (
    rf"{_GAP}(?:with|containing){_GAP}(?:(?:the|this){_GAP})?(?:following{_GAP})?(?:text|content|body)[ \t]*(?::|\n)"
)

_REPLACE = re.compile(
    rf"{_CHANGE}{_GAP}(?:(?:all|every|each|the|of|words?|text|phrase|occurrences?){_GAP}){{0,5}}"
    rf"{_quoted('old')}\s+(?:with|by|to|into)\s+{_quoted('new')}{_WHERE}",
    re.IGNORECASE,
)
_FIX = re.compile(
    rf"(?:(?:fix|correct|repair|check)(?:{_GAP}and{_GAP}(?:fix|correct))?){_GAP}"
    rf"(?:(?:all|any|every|the|our){_GAP}){{0,3}}"
    rf"{_SPELLING}(?:{_GAP}and{_GAP}(?:the{_GAP})?{_SPELLING})?{_WHERE}",
    re.IGNORECASE,
)
_PAGE = re.compile(
    rf"(?:add|create|write){_GAP}{_ARTICLE}page{_CALLED}{_GAP}"
    rf"(?:{_quoted('title')}{_WHERE}|(?P<title>[^\s\"“”][^\n\"“”]{{0,150}}?)){_TEXT}",
    re.IGNORECASE,
)
_SECTION = re.compile(
    rf"(?:add|create|write){_GAP}{_ARTICLE}section{_CALLED}{_GAP}"
    rf"(?:{_quoted('title')}|(?P<title>[^\s\"“”][^\n\"“”]{{0,150}})){_GAP}(?:to|in|on){_GAP}"
    rf"(?:{_quoted('page')}|(?P<page>[^\s\"“”][^\n\"“”]{{0,150}}?))(?:{_GAP}page)?{_TEXT}",
    re.IGNORECASE,
)
_RENAME = re.compile(
    rf"(?:rename|retitle){_GAP}(?:the{_GAP})?(?:(?P<noun>page|file|document)(?:{_GAP}(?:called|named|titled))?{_GAP})?"
    rf"(?:{_quoted('page')}|(?P<page>{_WORDS}))(?:{_GAP}(?P<kind>page|file|document))?{_GAP}(?:to|as|into){_GAP}",
    re.IGNORECASE,
)
_NEW_TITLE = re.compile(_quoted("title"))
_NEXT = re.compile(rf"[\s,;.!]*+\Z|(?:[\s,;.!]|(?:and|also|then|please)\b)++{_VERB}\b", re.IGNORECASE)
_TITLE_END = re.compile(
    rf"[.,;!](?=[.,;!]{{0,5}}(?:\s|\Z))|,?[ \t](?=(?:and|also|then)\s(?:(?:also|then|please)\s)?{_VERB}\b)|\n",
    re.IGNORECASE,
)
_PLACE = re.compile(_WHERE, re.IGNORECASE)
_LONGEST_TITLE = 100
_MAY_GO_ON = frozenset(
    ("across", "also", "and", "but", "everywhere", "in", "please", "so", "then", "throughout", "to", "too", "with")
)  # fmt: skip
"""Words that may not belong to an unquoted title but continue the sentence."""
_MAX_EDITS = 50  # more in one prompt is nothing a person wrote
_CLOSING = {'"': '"“”', "“": '"”', "”": '"”', "„": '"“”', "\u2018": "\u2019'", "`": "`"}
_NOT_PLACES = re.compile(
    rf"(?:(?:the|all|every|each|our|of|whole|entire){_GAP}){{0,4}}"
    r"(?:documentation|everything|files?|pages?|documents?|repository)",
    re.IGNORECASE,
)


def parse(prompt: str) -> tuple[Edit, ...]:
    """Returns the edits in a prompt, in order; empty if any part is not understood."""
    found, rest = _read(prompt)
    return () if rest else found


def not_understood(prompt: str) -> str:
    """Returns the rest of a prompt from the first part that is not understood."""
    return _read(prompt)[1]


def _read(prompt: str) -> tuple[tuple[Edit, ...], str]:
    found: list[Edit] = []
    position = _skip(prompt, 0)
    while position < len(prompt) and len(found) <= _MAX_EDITS:
        step = _match(prompt, position)
        if step is None:
            return tuple(found), prompt[position:]
        edit, end = step
        found.append(edit)
        position = _skip(prompt, end)
        if position == end < len(prompt):
            return tuple(found), prompt[position:]
    return tuple(found), prompt[position:] if len(found) <= _MAX_EDITS else prompt


def _skip(prompt: str, position: int) -> int:
    match = _CONNECTOR.match(prompt, position)
    return match.end() if match else position


def _match(prompt: str, position: int) -> tuple[Edit, int] | None:
    for pattern, build in _READERS:
        if match := pattern.match(prompt, position):
            return build(match)
    return None


def _replace(match: re.Match[str]) -> tuple[Edit, int] | None:
    old, new = _value(match, "old"), _value(match, "new")
    if not old or new is None or old == new:
        return None
    return Replace(old, new, _place(match)), match.end()


def _fix(match: re.Match[str]) -> tuple[Edit, int] | None:
    return FixSpelling(_place(match)), match.end()


def _page(match: re.Match[str]) -> tuple[Edit, int] | None:
    title = _title(match)
    text, end = _text(match.string, match.end())
    return (AddPage(title, text, _place(match)), end) if title and text else None


def _section(match: re.Match[str]) -> tuple[Edit, int] | None:
    title, page = _title(match), (_value(match, "page") or "").strip()
    text, end = _text(match.string, match.end())
    return (AddSection(title, _without_article(page), text), end) if title and page and text else None


def _rename(match: re.Match[str]) -> tuple[Edit, int] | None:
    old, (new, end) = (_value(match, "page") or "").strip(), _new_title(match.string, match.end())
    if not old or not new:
        return None
    if match["noun"] or match["kind"] or match["page"]:
        return RenamePage(_without_article(old), new), end
    place = _PLACE.match(match.string, end)
    if place and place[0]:
        return (Replace(old, new, _place(place)), place.end()) if old != new else None
    return (Rename(old, new), end) if old != new else None


def _new_title(prompt: str, start: int) -> tuple[str, int]:
    """Returns the new name at this position, empty if there is none, and the position after it."""
    if quoted := _NEW_TITLE.match(prompt, start):
        return _title(quoted), quoted.end()
    stop = _TITLE_END.search(prompt, start, start + _LONGEST_TITLE + 1)
    end = stop.start() if stop else len(prompt)
    title = " ".join(prompt[start:end].split())
    is_clear = end - start <= _LONGEST_TITLE and not set(title) & set('"“”') and _MAY_GO_ON.isdisjoint(title.split())
    return (title if is_clear else ""), end


_Reader = Callable[[re.Match[str]], tuple[Edit, int] | None]
_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (_REPLACE, _replace),
    (_FIX, _fix),
    (_PAGE, _page),
    (_SECTION, _section),
    (_RENAME, _rename),
)


def _value(match: re.Match[str], name: str) -> str | None:
    groups = match.groupdict()
    names = (name, f"{name}_double", f"{name}_single", f"{name}_code")
    return next((groups[key] for key in names if groups.get(key) is not None), None)


def _title(match: re.Match[str]) -> str:
    return " ".join((_value(match, "title") or "").split())


def _place(match: re.Match[str]) -> str | None:
    place = (_value(match, "where") or "").strip().rstrip(".,;:!")
    if not place or _NOT_PLACES.fullmatch(place):
        return None
    return _without_article(place)


def _without_article(place: str) -> str:
    place = re.sub(
        rf"^(?:(?:the|our|all|file|folder|directory|page){_GAP}){{1,3}}(?=\S)", "", place, flags=re.IGNORECASE
    )
    return re.sub(rf"(?<=\S){_GAP}(?:folder|directory|file|page|pages|section)$", "", place, flags=re.IGNORECASE)


def _text(prompt: str, start: int) -> tuple[str, int]:
    """Returns the text at this position, and the position after it."""
    body = prompt[start:].lstrip()
    offset = len(prompt) - len(body)
    end = _closing_mark(body)
    if end is not None:
        return body[1:end].strip(), offset + end + 1
    return body.strip(), len(prompt)


def _closing_mark(body: str) -> int | None:
    """Returns where the quotation at the start ends; None if only the first words are quoted."""
    marks = _CLOSING.get(body[:1], "")
    depth = 0
    for index, character in enumerate(body):
        if not index or character not in marks:
            continue
        if depth == 0 and _NEXT.match(body, index + 1):
            return index
        if body[index - 1].isspace():
            depth += 1
        elif depth:
            depth -= 1
        else:
            return None
    return None
