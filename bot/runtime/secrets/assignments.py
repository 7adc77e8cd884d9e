"""Finds secrets by the name that they are assigned to: `db_password: …`, `"apiKey": "…"`, `--token …`,
`<secret>…</secret>`.

Neither part is enough alone: the name has to denote a secret, and the value has to look random, or like a password.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from bot.runtime.secrets.kinds import FoundSecret, SecretKind, occurrences
from bot.runtime.secrets.names import KEYWORDS, names_password, secret_word
from bot.runtime.secrets.plausibility import (
    decoded_text,
    has_drawn_characters,
    is_code,
    is_hex,
    is_name,
    is_placeholder,
    is_random,
    reads_as_words,
)

_NAME = re.compile(r"[\w.\-]+")
_NAME_BACKWARDS = re.compile(r"[\w.\-]{0,50}+(?: [A-Za-z]{2,20})?")
_PROSE = re.compile(r"[ \t]{1,3}[^\W\d_]")
_LONGEST_BEFORE, _LONGEST_NAME = 70, 100

_TYPE = r"(?:[ \t]{0,3}:?[ \t]{1,3}(?:str|string|String|text|&str|char\*?))?"
_CLOSED = rf"(?:\\?[\"'`*_\])]){{0,4}}{_TYPE}[ \t\u00a0]{{0,12}}"
_ASSIGNS = r"(?:=>|[=!]={1,2}|:{0,3}=|[?+.]=|\|\|=|[:=\uff1a\uff1d])"
_OPENED = r"[*_]{0,2}[ \t\u00a0]{0,8}(?:[|>][+\-]?[ \t]{0,4}\r?\n[ \t]{1,20}|(?:\[\]byte\()?[Nbrfu@$]?(?=\\?[\"'`]))?"
_BARE = r"(?:[A-Za-z0-9_.~+/!@#$%^*?\-]|&(?!\w{1,30}=))"
_PARTS = rf"(?=[^\s:=]{{0,5}}[:=]|\S{{6}}){_BARE}{{0,100}}+(?:[:=](?=[\w\-]){_BARE}{{1,100}}+){{1,3}}+"
_VALUE = r"(?P<secret>[^\s\"'`\\]{6,400}+)"
_QUOTED = rf"(?P<quote>\\?[\"'`]){_VALUE}(?P=quote)"
_ALONE = r"(?P<quote>[\"'`]?)(?P<secret>[^\s\"'`\\]{8,400}+)(?P=quote)"
_WORD = r"(?P<quote>[\"'`]?)(?P<secret>[^\s\"'`\\|,;()<>\[\]]{10,200}+)(?P=quote)"


@dataclass(frozen=True)
class Shape:
    """A syntax of assignment. `expression` is matched at the end of the name, and its group `secret` is the value."""

    name: str
    expression: str
    option: bool = False
    """Whether the name is an option of a command."""
    loose: bool = False
    """Whether a name and a word can stand like this by chance, so that the value has to look random."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.expression)


SHAPES = (
    Shape("assignment-quoted", rf"{_CLOSED}{_ASSIGNS}{_OPENED}{_QUOTED}"),
    Shape("assignment",
        rf"{_CLOSED}{_ASSIGNS}{_OPENED}(?:\\?[\"'`])?(?P<secret>(?:{_BARE}{{6,2000}}+|{_PARTS})={{0,2}})(?![:=][\w\-]|[(\[\w=])"),
    Shape("argument", rf"(?:[\"'`][ \t]{{0,4}},[ \t]{{0,4}}|[ \t]{{0,2}}\(|[ \t]{{1,2}}(?=')){_QUOTED}"),
    Shape("element", r"[\"']?>\s{0,20}(?P<secret>[^\s<>\"'`]{6,400}+)\s{0,20}<"),
    Shape("value",
        rf"[\"']?,?\s{{1,40}}[\"']?value[\"']?\s{{0,3}}[:=]\s{{0,3}}(?P<quote>[\"']?){_VALUE}(?P=quote)"),
    Shape("option", rf"[ \t]{{1,4}}{_ALONE}(?=\s|\Z)", option=True),
    Shape("statement", rf"(?: for \w{{2,20}})?[ \t]{{1,2}}(?:is|ist|est|es|é):?[ \t]{{1,2}}{_ALONE}", loose=True),
    Shape("cell", rf"[*_`]{{0,2}}[ \t]{{0,20}}\|[ \t]{{0,20}}{_ALONE}[ \t]{{0,20}}\|", loose=True),
    Shape("next-line",
        rf"{_CLOSED}[:\uff1a]?[*_]{{0,2}}[ \t]{{0,8}}(?:\r?\n[ \t>]{{0,8}}){{1,2}}{_ALONE}[ \t]{{0,8}}(?=\r?\n|\Z)",
        loose=True),
    Shape("word", rf"[ \t]{{1,4}}{_WORD}(?=\s|\Z)", loose=True),
)  # fmt: skip


def assigned_secrets(text: str, lower: str) -> Iterator[FoundSecret]:
    """Yields the secrets assigned to names that denote one. `lower` is the text in lower case."""
    seen: set[int] = set()
    for keyword in KEYWORDS:
        end = 0
        for at in occurrences(lower, keyword):
            if at >= end:
                match = _NAME.match(text, at)
                end = match.end() if match else at + 1
                if end not in seen:
                    seen.add(end)
                    found = _assigned(text, at, end)
                    if found is not None:
                        end = found.end
                        yield found


def _assigned(text: str, at: int, end: int) -> FoundSecret | None:
    if end - at > _LONGEST_NAME:
        return None
    name = ""
    for shape in SHAPES:
        match = shape.pattern.match(text, end)
        if match is None:
            continue
        name = name or _name_before(text, at) + text[at:end]
        if shape.option and not name.rpartition(" ")[2].startswith("-"):
            continue
        if match["secret"].isalpha() and _PROSE.match(text, match.end()):
            continue
        if _is_named_secret(name, match["secret"], loose=shape.loose):
            return FoundSecret(match.start("secret"), match.end("secret"), SecretKind.ASSIGNMENT, shape.name)
    return None


def _name_before(text: str, at: int) -> str:
    """Returns the part of the name before its keyword, with the preceding word."""
    match = _NAME_BACKWARDS.match(text[max(at - _LONGEST_BEFORE, 0) : at][::-1])
    return match[0][::-1] if match else ""


def _is_named_secret(name: str, given: str, *, loose: bool) -> bool:
    word = secret_word(name)
    if not word or (loose and not given.isascii()):
        return False
    value = decoded_text(given) or given
    plausible = not any(_is_word(each) or _is_name_of_secret(each) for each in (given, value))
    return plausible and _is_secret(value, password=names_password(word), loose=loose)


_LONG_LETTERS, _MOST_DIGITS = 10, 2


def _is_word(value: str) -> bool:
    """Returns whether a value has only letters, and they are too few, or follow each other as in words."""
    bare = value.rstrip("=")
    return bare.isalpha() and (len(bare) < _LONG_LETTERS or reads_as_words(bare) or not bare.isascii())


def _is_name_of_secret(value: str) -> bool:
    """Returns whether a value is itself the name of a secret in code: `confirmPassword2`, `corev1.Secret`."""
    name = _NAME.fullmatch(value.lstrip("&*"))
    return name is not None and sum(map(str.isdigit, value)) <= _MOST_DIGITS and bool(secret_word(value))


_SHORTEST_PASSWORD, _SHORTEST_DRAWN, _LONG_NUMBER, _FEWEST_SIGNS, _LOOSE_CHANGES = 6, 8, 14, 5, 0.2
_CLASSES = (str.islower, str.isupper, str.isdigit, lambda character: not (character.isalnum() or character in "_-./"))
_MANY_CLASSES = 3


def _is_secret(value: str, *, password: bool, loose: bool) -> bool:
    if is_placeholder(value) or is_code(value):
        return False
    if password and _is_password(value):
        return not loose or has_drawn_characters(value)
    if value.isalpha() or value.isdigit():
        return not loose and (value.isalpha() or len(value) >= _LONG_NUMBER)
    if len(value) < _SHORTEST_DRAWN or not has_drawn_characters(value) or is_name(value):
        return False
    return is_hex(value) or is_random(value, _LOOSE_CHANGES) if loose else len(set(value)) >= _FEWEST_SIGNS


def _is_password(value: str) -> bool:
    """Returns whether a value looks like a chosen password: it mixes three classes of characters, or is not a name."""
    if len(value) < _SHORTEST_PASSWORD or value.isalpha() or ("/" in value and is_name(value)):
        return False
    classes = sum(any(map(belongs, value)) for belongs in _CLASSES)
    return classes >= _MANY_CLASSES or (classes > 1 and has_drawn_characters(value) and not is_name(value))
