"""Defines rules for secrets, with constructors for the most common ones.

A rule's pattern is matched only where one of its keywords occurs, so a text without keywords costs only a search.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from bot.runtime.secrets.kinds import SecretKind
from bot.runtime.secrets.plausibility import (
    entropy,
    has_drawn_characters,
    is_name,
    is_placeholder,
    reads_as_placeholder,
)

GITLEAKS = "gitleaks 8 (github.com/gitleaks/gitleaks, MIT): formats, lengths and entropy bounds of its default rules"
"""The source of figures. None of its code is used."""
OURS = "documentation of the issuer or the tool"

START = r"(?:(?<![A-Za-z0-9+])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"
"""Where a token can start: not inside a word, unless an escaped character precedes it."""
LETTERS = "[A-Za-z0-9]"
HEX = "[a-fA-F0-9]"
URLSAFE = r"[\w\-]"
BASE64 = "[A-Za-z0-9+/]"
UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

Accept = Callable[[re.Match[str]], bool]


def anything(match: re.Match[str]) -> bool:
    """Accepts anything except placeholders."""
    return not is_placeholder(match["secret"])


def drawn(match: re.Match[str]) -> bool:
    """Accepts random values: letters and digits, not a placeholder, not made of words."""
    value = match["secret"]
    return has_drawn_characters(value) and not is_placeholder(value) and not is_name(value)


@dataclass(frozen=True)
class SecretRule:
    """The format of one kind of secret.

    Attributes:
        name: The rule's name, in lower case with hyphens.
        kind: The kind shown to people.
        keywords: In lower case. The pattern is matched `ahead` characters before each occurrence of one of them.
        expression: The pattern's regular expression; its group `secret` is masked.
        entropy: Minimum entropy of the secret, in bits per character.
        ahead: The number of characters that a match has before the keyword.
        accept: Decides whether a match is a secret.
        source: The source of the format and its figures.
    """

    name: str
    kind: SecretKind
    keywords: tuple[str, ...]
    expression: str
    entropy: float = 0.0
    ahead: int = 0
    accept: Accept = anything
    source: str = OURS

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when its keyword first occurs: most never do."""
        return re.compile(self.expression)

    def finds(self, match: re.Match[str]) -> bool:
        """Returns whether a match is a secret."""
        return self.accept(match) and (not self.entropy or entropy(match["secret"]) >= self.entropy)


def token(
    name: str, kind: SecretKind, prefix: str, body: str, bits: float = 2.0, *, accept: Accept = anything
) -> SecretRule:
    """Returns the rule for a secret with a fixed prefix. `prefix` is literal, `body` is the pattern that follows it."""
    expression = rf"{START}(?P<secret>{re.escape(prefix)}{body})"
    return SecretRule(name, kind, (prefix.lower(),), expression, bits, accept=accept, source=GITLEAKS)


def named(name: str, keywords: str, value: str, bits: float = 2.0) -> SecretRule:
    """Returns the rule for a value without a prefix, assigned to a name with its issuer's name in it.

    `keywords` are the issuer's names, separated by spaces. `value` is a pattern, which ignores case.
    """
    words = keywords.split()
    issuer = "|".join(map(re.escape, words))
    expression = (
        rf"(?P<issuer>(?i:{issuer}))[ \t\w.\-]{{0,20}}+[\s'\"]{{0,3}}+(?:=>|:{{1,3}}=|\?=|\|\||[=>:,])[`'\"\s=]{{0,5}}"
        rf"(?P<secret>(?i:{value}))(?![\w\-+/=]|\.\w)"
    )
    return SecretRule(name, SecretKind.SERVICE, tuple(words), expression, bits, accept=_named_value, source=GITLEAKS)


_SECRET_NAME = re.compile(r"api|auth|client|id|key|pass|secret|token", re.IGNORECASE)
_SURE_LENGTH = 22
"""Characters; a shorter value can be a name, so its variable has to denote a secret as well as the issuer."""


def _named_value(match: re.Match[str]) -> bool:
    value, name = match["secret"], match.string[match.start() : match.start("secret")]
    is_named_secret = len(value) >= _SURE_LENGTH or _SECRET_NAME.search(name) is not None
    return is_named_secret and any(map(str.isdigit, value)) and not reads_as_placeholder(value) and _begins_word(match)


def _begins_word(match: re.Match[str]) -> bool:
    """Returns whether the issuer's name starts a word, where a change of case, as in camelCase, also starts one."""
    issuer, before = match["issuer"], match.string[max(match.start() - 1, 0) : match.start()]
    if issuer[0].islower() and not issuer.islower():
        return False
    return not before.isalpha() or before.islower() != issuer[0].islower()
