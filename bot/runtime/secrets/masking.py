"""Finds secrets in a text by rules, and masks them. Pure, and linear in the length of the text."""

import re
import string
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from bot.runtime.secrets import FoundSecret, SecretKind, occurrences
from bot.runtime.secrets.assignments import SHAPES, assigned_secrets
from bot.runtime.secrets.patterns import PATTERNS, PRIVATE_KEY, secrets_by_pattern
from bot.runtime.secrets.plausibility import is_common_word
from bot.runtime.secrets.tokens import PREFIXES, TOKEN_RULES, secrets_in_words

RULE_NAMES = TOKEN_RULES.union((each.name for each in (*PATTERNS, *SHAPES)), (PRIVATE_KEY,))
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_PUBLIC_BLOCK = re.compile(
    r"-----BEGIN (?![A-Z0-9 ]{0,40}PRIVATE KEY)[A-Z0-9 ]{1,40}-----[A-Za-z0-9+/=\\\s]{0,40000}-----END"
)
"""A certificate or a public key (RFC 7468)."""
_MOST_LAYERS = 2
"""Encodings around a secret that are seen through."""
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Unlike `str.lower`, it keeps the position of every character."""
_SHORTEST_OWN = 6
"""Characters; masking a shorter value, or a common word, would garble texts and reveal the value."""
_SEPARATOR = "\n\n"


@dataclass(frozen=True)
class Masked:
    """Masked texts, and the kinds of their secrets, each once and in SecretKind's order."""

    texts: tuple[str, ...]
    kinds: tuple[SecretKind, ...] = ()

    @property
    def text(self) -> str:
        """The only one."""
        return self.texts[0]


@dataclass(frozen=True)
class SecretMasker:
    """Masks secrets found by the rules, and Pagehand's own configured secrets (`own`, which may grow) wherever they
    occur.
    """

    own: Collection[str] = field(default=(), repr=False)

    def mask(self, text: str) -> Masked:
        """Returns the text with secrets replaced by `[masked: AWS key]` and the like."""
        return self.mask_together((text,))

    def mask_own(self, text: str) -> str:
        """Returns the text with only Pagehand's own configured secrets masked."""
        return _masked(text, _merge_overlaps(list(_own(text, self.own))), 0, len(text))

    def hide(self, text: str) -> str:
        """Returns a text with its secrets masked."""
        return self.mask(text).text

    def mask_together(self, texts: Sequence[str]) -> Masked:
        """Masks texts that are sent one after the other. A secret that spans several is masked in each of them."""
        joined = _SEPARATOR.join(texts)
        findings = find(joined, self.own)
        kinds = {finding.kind for finding in findings}
        masked, at = [], 0
        for text in texts:
            masked.append(_masked(joined, findings, at, at + len(text)))
            at += len(text) + len(_SEPARATOR)
        return Masked(tuple(masked), tuple(kind for kind in SecretKind if kind in kinds))


def find(text: str, own: Iterable[str] = ()) -> list[FoundSecret]:
    """Returns the secrets in a text, in order and without overlaps. The values in `own` are always secrets."""
    found = [*_own(text, own), *_by_rules(text, _MOST_LAYERS)]
    if _INVISIBLE.search(text):
        found += _despite_invisible(text, own)
    return _merge_overlaps(found)


def _despite_invisible(text: str, own: Iterable[str]) -> Iterator[FoundSecret]:
    """Finds secrets with invisible characters in them."""
    places = [at for at, character in enumerate(text) if not _INVISIBLE.match(character)]
    visible = _INVISIBLE.sub("", text)
    for each in (*_own(visible, own), *_by_rules(visible, _MOST_LAYERS)):
        yield FoundSecret(places[each.start], places[each.end - 1] + 1, each.kind, each.rule)


def _by_rules(text: str, layers: int) -> list[FoundSecret]:
    """If several rules find a secret, the first one determines its kind."""
    text = _PUBLIC_BLOCK.sub(lambda block: " " * len(block[0]), text)
    lower = text.translate(_ASCII_LOWER)

    def inside(decoded: str) -> list[FoundSecret]:
        return _by_rules(decoded, layers - 1) if layers else []

    words = list(secrets_in_words(text, inside))
    return [
        *(word for word in words if word.rule in PREFIXES),
        *secrets_by_pattern(text, lower),
        *assigned_secrets(text, lower),
        *words,
    ]


def _own(text: str, own: Iterable[str]) -> Iterator[FoundSecret]:
    for value in own:
        if len(value) >= _SHORTEST_OWN and not is_common_word(value):
            yield from (
                FoundSecret(at, at + len(value), SecretKind.OWN, "configured-value") for at in occurrences(text, value)
            )


def _merge_overlaps(found: list[FoundSecret]) -> list[FoundSecret]:
    """Merges findings that overlap into one that covers them all, with the kind of the one found first."""
    merged: list[tuple[int, FoundSecret]] = []
    for rank, each in sorted(enumerate(found), key=lambda ranked: (ranked[1].start, ranked[0])):
        if not merged or each.start >= merged[-1][1].end:
            merged.append((rank, each))
            continue
        first, last = merged[-1]
        named = each if rank < first else last
        merged[-1] = min(rank, first), FoundSecret(last.start, max(last.end, each.end), named.kind, named.rule)
    return [each for _, each in merged]


def _masked(text: str, findings: Sequence[FoundSecret], start: int, end: int) -> str:
    """Returns a part of a text with what was found in it masked."""
    parts = []
    for finding in findings[bisect_right(findings, start, key=attrgetter("end")) :]:
        if finding.start >= end:
            break
        parts += [text[start : finding.start], f"[masked: {finding.kind}]"]
        start = min(finding.end, end)
    return "".join((*parts, text[start:end]))
