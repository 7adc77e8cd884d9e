"""Finds secrets by the name that they are assigned to: `db_password: …`, `"apiKey": "…"`, `--token …`,
`<secret>…</secret>`.

Neither part is enough alone: the name has to denote a secret, and the value has to look random, or like a password.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.runtime.secrets.kinds import FoundSecret, SecretKind, occurrences
from bot.runtime.secrets.names import names_password, secret_word
from bot.runtime.secrets.plausibility import (
    entropy,
    has_drawn_characters,
    is_code,
    is_name,
    is_placeholder,
    printable_base64,
)

_KEYWORDS = ("pass", "pwd", "secret", "token", "key", "cred", "auth")
_NAME = re.compile(r"[\w.\-]+")
_NAME_BACKWARDS = re.compile(r"[\w.\-]{0,50}+(?: [A-Za-z]{2,20})?")
_LONGEST_BEFORE, _LONGEST_NAME = 70, 100

_TYPE = r"(?:[ \t]{0,3}:?[ \t]{1,3}(?:str|string|String|text|&str|char\*?))?"
_CLOSED = rf"(?:\\?[\"'`]|[\])])?{_TYPE}[ \t]{{0,12}}"
_ASSIGNS = r"(?:=>|[=!]={1,2}|:{0,3}=|[?+.]=|\|\|=|[:=])"
_OPENED = r"[ \t]{0,8}(?:[|>][+\-]?[ \t]{0,4}\r?\n[ \t]{1,20}|[brfu@$]?(?=\\?[\"'`]))?"
_BARE = r"(?:[A-Za-z0-9_.~+/!@#$%^*?\-]|&(?!\w{1,30}=))"
_QUOTED = r"(?P<quote>\\?[\"'`])(?P<secret>[^\s\"'`\\]{6,400}+)(?P=quote)"


@dataclass(frozen=True)
class Shape:
    """A syntax of assignment. `pattern` is matched at the end of the name, and its group `secret` is the value."""

    name: str
    pattern: re.Pattern[str]
    option: bool = False
    """Whether the name is an option of a command."""


SHAPES = (
    Shape("assignment-quoted", re.compile(rf"{_CLOSED}{_ASSIGNS}{_OPENED}{_QUOTED}")),
    Shape(
        "assignment",
        re.compile(rf"{_CLOSED}{_ASSIGNS}{_OPENED}(?:\\?[\"'`])?(?P<secret>{_BARE}{{6,400}}+={{0,2}})(?![(\[\w=])"),
    ),
    Shape(
        "argument",
        re.compile(r"[\"'`][ \t]{0,4},[ \t]{0,4}(?P<quote>[\"'`])(?P<secret>[^\s\"'`\\]{6,400}+)(?P=quote)"),
    ),
    Shape("element", re.compile(r">\s{0,20}(?P<secret>[^\s<>\"'`]{6,400}+)\s{0,20}<")),
    Shape(
        "option",
        re.compile(r"[ \t]{1,4}(?P<quote>[\"']?)(?P<secret>[^\s\"'`\\]{8,400}+)(?P=quote)(?=\s|\Z)"),
        option=True,
    ),
    Shape(
        "statement",
        re.compile(r"[ \t]{1,2}is:?[ \t]{1,2}(?P<quote>[\"'`]?)(?P<secret>[^\s\"'`\\]{8,400}+)(?P=quote)"),
    ),
)


def assigned_secrets(text: str, lower: str) -> Iterator[FoundSecret]:
    """Yields the secrets assigned to names that denote one. `lower` is the text in lower case."""
    seen: set[int] = set()
    for keyword in _KEYWORDS:
        end = 0
        for at in occurrences(lower, keyword):
            if at >= end:
                end = _end_of_name(text, at)
                if end not in seen:
                    seen.add(end)
                    yield from _assigned(text, at, end)


def _end_of_name(text: str, at: int) -> int:
    match = _NAME.match(text, at)
    return match.end() if match else at + 1


def _assigned(text: str, at: int, end: int) -> Iterator[FoundSecret]:
    if end - at > _LONGEST_NAME:
        return
    for shape in SHAPES:
        match = shape.pattern.match(text, end)
        if match is None:
            continue
        name = _name_before(text, at) + text[at:end]
        if shape.option and not name.rpartition(" ")[2].startswith("-"):
            continue
        if _is_named_secret(name, match["secret"]):
            yield FoundSecret(match.start("secret"), match.end("secret"), SecretKind.ASSIGNMENT, shape.name)
            return


def _name_before(text: str, at: int) -> str:
    """Returns the part of the name before its keyword, with the preceding word."""
    match = _NAME_BACKWARDS.match(text[max(at - _LONGEST_BEFORE, 0) : at][::-1])
    return match[0][::-1] if match else ""


def _is_named_secret(name: str, given: str) -> bool:
    if _is_word(given):
        return False
    value = printable_base64(given) or given
    if _is_word(value):
        return False
    word = secret_word(name)
    return bool(word) and _is_secret(value, password=names_password(word))


def _is_word(value: str) -> bool:
    """Returns whether a value has only letters, and too few of them to be random."""
    return len(value) < _LONG_WITHOUT_DIGITS and value.rstrip("=").isalpha()


_LONG_WITHOUT_DIGITS = 16


def _is_secret(value: str, *, password: bool) -> bool:
    if is_placeholder(value) or is_code(value):
        return False
    if password and _is_password(value):
        return True
    if len(value) < _SHORTEST_DRAWN or not has_drawn_characters(value) or is_name(value):
        return False
    return entropy(value) >= min(_BITS, _BITS_OF_LENGTH * math.log2(len(value)))


_SHORTEST_PASSWORD, _SHORTEST_DRAWN = 6, 8
_BITS, _BITS_OF_LENGTH = 3.0, 0.7
_CLASSES = (str.islower, str.isupper, str.isdigit, lambda character: not (character.isalnum() or character in "_-./"))
_MANY_CLASSES = 3


def _is_password(value: str) -> bool:
    """Returns whether a value looks like a chosen password: it mixes three classes of characters, or is not a name."""
    if len(value) < _SHORTEST_PASSWORD or value.isalpha() or ("/" in value and is_name(value)):
        return False
    classes = sum(any(map(belongs, value)) for belongs in _CLASSES)
    return classes >= _MANY_CLASSES or (classes > 1 and has_drawn_characters(value) and not is_name(value))
