"""Finds secrets in a text by rules, and masks them. Pure, and linear in the length of the text."""

import string
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bot.runtime.secrets.assignments import SHAPES, assigned_secrets
from bot.runtime.secrets.credential_rules import CREDENTIAL_RULES
from bot.runtime.secrets.issuer_rules import ISSUER_RULES
from bot.runtime.secrets.kinds import FoundSecret, SecretKind, occurrences
from bot.runtime.secrets.named_rules import NAMED_RULES
from bot.runtime.secrets.plausibility import is_common_word
from bot.runtime.secrets.private_keys import private_keys
from bot.runtime.secrets.rules import SecretRule

RULES = (*ISSUER_RULES, *CREDENTIAL_RULES, *NAMED_RULES)
"""If several rules find a secret, the first one determines its kind."""
RULE_NAMES = frozenset((*(rule.name for rule in RULES), *(shape.name for shape in SHAPES), "private-key"))
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Unlike `str.lower`, it keeps the position of every character."""
_SHORTEST_OWN = 6
"""Characters; masking a shorter value, or a common word, would garble texts and reveal the value."""
_SEPARATOR = "\n\n"


@dataclass(frozen=True)
class Masked:
    """A masked text, the kinds of its secrets (each once, in SecretKind's order), and the rules that found them."""

    text: str
    kinds: tuple[SecretKind, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class MaskedParts:
    """Several texts that were masked as if they were one."""

    texts: tuple[str, ...]
    kinds: tuple[SecretKind, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class SecretMasker:
    """Masks secrets found by the rules, and Pagehand's own configured secrets (`own`, which may grow) wherever they
    occur.
    """

    own: Collection[str] = field(default=(), repr=False)

    def find(self, text: str) -> list[FoundSecret]:
        """Returns the secrets in a text, in order and without overlaps."""
        return find(text, self.own)

    def mask(self, text: str) -> Masked:
        """Returns the text with secrets replaced by `[masked: AWS key]` and the like."""
        masked = self.mask_together((text,))
        return Masked(masked.texts[0], masked.kinds, masked.rules)

    def mask_own(self, text: str) -> str:
        """Returns the text with only Pagehand's own configured secrets masked."""
        return _masked(text, 0, _merge_overlaps(list(_own(text, self.own))))

    def mask_together(self, texts: Sequence[str]) -> MaskedParts:
        """Masks texts that are sent one after the other. A secret that spans several is masked in each of them."""
        findings = self.find(_SEPARATOR.join(texts))
        kinds = {finding.kind for finding in findings}
        return MaskedParts(
            tuple(_masked_parts(texts, findings)),
            tuple(kind for kind in SecretKind if kind in kinds),
            tuple(dict.fromkeys(finding.rule for finding in findings)),
        )


def find(text: str, own: Iterable[str] = ()) -> list[FoundSecret]:
    """Returns the secrets in a text, in order and without overlaps. The values in `own` are always secrets."""
    found = [*_own(text, own), *_private_keys(text)]
    lower = text.translate(_ASCII_LOWER)
    for rule in RULES:
        found += _by_rule(rule, text, lower)
    found += assigned_secrets(text, lower)
    return _merge_overlaps(found)


def mask_secrets(text: str) -> Masked:
    """Masks a text by the rules only."""
    return SecretMasker().mask(text)


def _own(text: str, own: Iterable[str]) -> Iterator[FoundSecret]:
    for value in own:
        if len(value) >= _SHORTEST_OWN and not is_common_word(value):
            yield from (
                FoundSecret(at, at + len(value), SecretKind.OWN, "configured-value") for at in occurrences(text, value)
            )


def _private_keys(text: str) -> Iterator[FoundSecret]:
    return (FoundSecret(start, end, SecretKind.PRIVATE_KEY, "private-key") for start, end in private_keys(text))


def _by_rule(rule: SecretRule, text: str, lower: str) -> Iterator[FoundSecret]:
    for keyword in rule.keywords:
        done = 0
        for at in occurrences(lower, keyword):
            start = at - rule.ahead
            match = rule.pattern.match(text, start) if start >= done else None
            if match is not None:
                done = match.end("secret")
                if rule.finds(match):
                    yield FoundSecret(match.start("secret"), done, rule.kind, rule.name)


def _merge_overlaps(found: list[FoundSecret]) -> list[FoundSecret]:
    """Merges findings that overlap into one that covers them all, with the kind of the one found first."""
    merged: list[FoundSecret] = []
    ranks: list[int] = []
    for rank, each in sorted(enumerate(found), key=lambda ranked: (ranked[1].start, ranked[0])):
        if not merged or each.start >= merged[-1].end:
            merged.append(each)
            ranks.append(rank)
            continue
        last = merged[-1]
        first = each if rank < ranks[-1] else last
        ranks[-1] = min(rank, ranks[-1])
        merged[-1] = FoundSecret(last.start, max(last.end, each.end), first.kind, first.rule)
    return merged


def _masked_parts(texts: Sequence[str], findings: Sequence[FoundSecret]) -> Iterator[str]:
    offset, at = 0, 0
    for text in texts:
        while at < len(findings) and findings[at].end <= offset:
            at += 1
        yield _masked(text, offset, findings[at:])
        offset += len(text) + len(_SEPARATOR)


def _masked(text: str, offset: int, findings: Sequence[FoundSecret]) -> str:
    parts, end = [], 0
    for finding in findings:
        start = max(finding.start - offset, 0)
        if start >= len(text):
            break
        parts += [text[end:start], f"[masked: {finding.kind}]"]
        end = min(finding.end - offset, len(text))
    return "".join((*parts, text[end:]))
