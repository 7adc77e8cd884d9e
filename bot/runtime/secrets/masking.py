"""Finds secrets in a text by the rules, and masks them. Pure, and linear in the text."""

import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bot.runtime.secrets.assignments import SHAPES, assigned_secrets
from bot.runtime.secrets.credential_rules import CREDENTIAL_RULES
from bot.runtime.secrets.issuer_rules import ISSUER_RULES
from bot.runtime.secrets.kinds import Finding, SecretKind, occurrences
from bot.runtime.secrets.named_rules import NAMED_RULES
from bot.runtime.secrets.plausibility import is_common_word
from bot.runtime.secrets.private_keys import private_keys
from bot.runtime.secrets.rules import SecretRule

RULES = (*ISSUER_RULES, *CREDENTIAL_RULES, *NAMED_RULES)
"""What comes first names a secret that several rules find."""
RULE_NAMES = frozenset((*(rule.name for rule in RULES), *(shape.name for shape in SHAPES), "private-key"))
_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Unlike `lower`, it keeps every character at its place."""
_SHORTEST_OWN = 6
"""Characters; masking a shorter value, or a common word, would garble texts and tell what the value is."""
_BETWEEN = "\n\n"


@dataclass(frozen=True)
class Masked:
    """A text without its secrets; which kinds they were of, each once, in the order of SecretKind; and by which rules
    they were found.
    """

    text: str
    kinds: tuple[SecretKind, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class MaskedParts:
    """Several texts that were masked as one."""

    texts: tuple[str, ...]
    kinds: tuple[SecretKind, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class SecretMasker:
    """Masks by the rules, and what Pagehand itself is configured with wherever it stands."""

    own: tuple[str, ...] = field(default=(), repr=False)

    def find(self, text: str) -> list[Finding]:
        """Returns the secrets of a text, in their order; none overlaps another."""
        return find(text, self.own)

    def mask(self, text: str) -> Masked:
        """Returns the text with `[masked: AWS key]` and the like in the place of secrets."""
        masked = self.mask_together((text,))
        return Masked(masked.texts[0], masked.kinds, masked.rules)

    def mask_own(self, text: str) -> str:
        """Returns the text without what Pagehand itself is configured with; whatever else it holds stays."""
        return _masked(text, 0, _apart(list(_own(text, self.own))))

    def mask_together(self, texts: Sequence[str]) -> MaskedParts:
        """Masks texts that go out one after the other: a secret that is spread over several is masked in each."""
        findings = self.find(_BETWEEN.join(texts))
        kinds = {finding.kind for finding in findings}
        return MaskedParts(
            tuple(_masked_parts(texts, findings)),
            tuple(kind for kind in SecretKind if kind in kinds),
            tuple(dict.fromkeys(finding.rule for finding in findings)),
        )


def find(text: str, own: Iterable[str] = ()) -> list[Finding]:
    """Returns the secrets of a text, in their order; none overlaps another. `own`: values that always are secrets."""
    found = [*_own(text, own), *_private_keys(text)]
    small = text.translate(_SMALL)
    for rule in RULES:
        found += _by_rule(rule, text, small)
    found += assigned_secrets(text, small)
    return _apart(found)


def mask_secrets(text: str) -> Masked:
    """Masks a text by the rules alone."""
    return SecretMasker().mask(text)


def _own(text: str, own: Iterable[str]) -> Iterator[Finding]:
    for value in own:
        if len(value) >= _SHORTEST_OWN and not is_common_word(value):
            yield from (
                Finding(at, at + len(value), SecretKind.OWN, "configured-value") for at in occurrences(text, value)
            )


def _private_keys(text: str) -> Iterator[Finding]:
    return (Finding(start, end, SecretKind.PRIVATE_KEY, "private-key") for start, end in private_keys(text))


def _by_rule(rule: SecretRule, text: str, small: str) -> Iterator[Finding]:
    for keyword in rule.keywords:
        done = 0
        for at in occurrences(small, keyword):
            start = at - rule.ahead
            match = rule.pattern.match(text, start) if start >= done else None
            if match is not None:
                done = match.end("secret")
                if rule.finds(match):
                    yield Finding(match.start("secret"), done, rule.kind, rule.name)


def _apart(found: list[Finding]) -> list[Finding]:
    """Makes one of findings that overlap: as wide as all of them, and of the kind that was found first."""
    apart: list[Finding] = []
    ranks: list[int] = []
    for rank, each in sorted(enumerate(found), key=lambda ranked: (ranked[1].start, ranked[0])):
        if not apart or each.start >= apart[-1].end:
            apart.append(each)
            ranks.append(rank)
            continue
        last = apart[-1]
        first = each if rank < ranks[-1] else last
        ranks[-1] = min(rank, ranks[-1])
        apart[-1] = Finding(last.start, max(last.end, each.end), first.kind, first.rule)
    return apart


def _masked_parts(texts: Sequence[str], findings: Sequence[Finding]) -> Iterator[str]:
    offset, at = 0, 0
    for text in texts:
        while at < len(findings) and findings[at].end <= offset:
            at += 1
        yield _masked(text, offset, findings[at:])
        offset += len(text) + len(_BETWEEN)


def _masked(text: str, offset: int, findings: Sequence[Finding]) -> str:
    parts, end = [], 0
    for finding in findings:
        start = max(finding.start - offset, 0)
        if start >= len(text):
            break
        parts += [text[end:start], f"[masked: {finding.kind}]"]
        end = min(finding.end - offset, len(text))
    return "".join((*parts, text[end:]))
