"""What a rule is, and how the common shapes of rules are written.

A rule is tried only where one of its keywords stands, so a text without any is read at the speed of a search for words.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from bot.runtime.secrets.kinds import SecretKind
from bot.runtime.secrets.plausibility import (
    entropy,
    has_drawn_characters,
    is_name,
    is_placeholder,
    reads_as_placeholder,
)

GITLEAKS = "gitleaks 8 (github.com/gitleaks/gitleaks, MIT): formats, lengths and entropy bounds of its default rules"
"""No code of theirs is here; the licence of its figures is named where they are used."""
OURS = "what the issuer, or the tool's manual, documents"

START = r"(?:(?<![A-Za-z0-9+])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"
"""Where a token can begin: not inside of a word, unless what precedes is an escaped character."""
LETTERS = "[A-Za-z0-9]"
HEX = "[a-fA-F0-9]"
URLSAFE = r"[\w\-]"
BASE64 = "[A-Za-z0-9+/]"
UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

Accept = Callable[[re.Match[str]], bool]


def anything(match: re.Match[str]) -> bool:
    """Whatever is no placeholder."""
    return not is_placeholder(match["secret"])


def drawn(match: re.Match[str]) -> bool:
    """What a machine drew: letters and digits, no placeholder, and not made of words."""
    value = match["secret"]
    return has_drawn_characters(value) and not is_placeholder(value) and not is_name(value)


@dataclass(frozen=True)
class SecretRule:
    """How one kind of secret looks.

    Attributes:
        name: What the rule is called, in lower case with hyphens.
        kind: What people are told.
        keywords: In lower case. One of them stands where a match begins, after `ahead` other characters.
        pattern: What is tried there. Its group `secret` is masked.
        entropy: Bits a character that the secret has at least.
        ahead: How many characters a match has in front of the keyword.
        accept: Whether what was matched is a secret.
        source: Where the format and its figures come from.
    """

    name: str
    kind: SecretKind
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]
    entropy: float = 0.0
    ahead: int = 0
    accept: Accept = anything
    source: str = OURS

    def finds(self, match: re.Match[str]) -> bool:
        """Returns whether what was matched is a secret."""
        return self.accept(match) and (not self.entropy or entropy(match["secret"]) >= self.entropy)


def token(
    name: str, kind: SecretKind, prefix: str, body: str, bits: float = 2.0, *, accept: Accept = anything
) -> SecretRule:
    """A secret that begins with letters of its issuer's. `prefix` is a literal, `body` the pattern of what follows."""
    pattern = re.compile(rf"{START}(?P<secret>{re.escape(prefix)}{body})")
    return SecretRule(name, kind, (prefix.lower(),), pattern, bits, accept=accept, source=GITLEAKS)


def named(name: str, keywords: str, value: str, bits: float = 2.0) -> SecretRule:
    """A value without a prefix of its own, behind its issuer's name: `keywords`, with spaces between, or its beginning.
    In `value` capitals do not matter.
    """
    words = keywords.split()
    issuer = "|".join(map(re.escape, words))
    pattern = re.compile(
        rf"(?P<issuer>(?i:{issuer}))[ \t\w.\-]{{0,20}}+[\s'\"]{{0,3}}+(?:=>|:{{1,3}}=|\?=|\|\||[=>:,])[`'\"\s=]{{0,5}}"
        rf"(?P<secret>(?i:{value}))(?![\w\-+/=]|\.\w)"
    )
    return SecretRule(name, SecretKind.SERVICE, tuple(words), pattern, bits, accept=_named_value, source=GITLEAKS)


_TELLING = re.compile(r"api|auth|client|id|key|pass|secret|token", re.IGNORECASE)
_TELLS_BY_ITSELF = 22
"""Characters; a shorter value can be a name, so its own name has to say more than its issuer."""


def _named_value(match: re.Match[str]) -> bool:
    value, name = match["secret"], match.string[match.start() : match.start("secret")]
    telling = len(value) >= _TELLS_BY_ITSELF or _TELLING.search(name) is not None
    return telling and any(map(str.isdigit, value)) and not reads_as_placeholder(value) and _begins_word(match)


def _begins_word(match: re.Match[str]) -> bool:
    """Whether the issuer's name begins where a word does: capitals begin one, too, but not in its midst alone."""
    issuer, before = match["issuer"], match.string[max(match.start() - 1, 0) : match.start()]
    if issuer[0].islower() and not issuer.islower():
        return False
    return not before.isalpha() or before.islower() != issuer[0].islower()
