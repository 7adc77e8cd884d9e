"""Looks through one file, or one name, for secrets. Pure; seconds for a megabyte of the worst text."""

from collections.abc import Iterator
from dataclasses import dataclass

from bot.jobserver.leaks.allowances import Allowances
from bot.jobserver.leaks.archives import TooMuchPackedError, unpacked
from bot.jobserver.leaks.contents import text_in
from bot.jobserver.leaks.forms import forms_of, squeezed
from bot.runtime.secrets.kinds import SecretKind
from bot.runtime.secrets.masking import find

_LONGEST_LINE = 16
"""Lines of a secret that are looked for in what was there before; a private key has more, all drawn."""


@dataclass(frozen=True)
class Suspicion:
    """A secret in a file. `lines` are what stands nowhere else if it is new."""

    path: str
    kind: SecretKind
    rule: str
    lines: tuple[str, ...]


class Scanner:
    """Knows the values of this server in all their forms, and what is allowed."""

    def __init__(self, known: tuple[str, ...], allowances: Allowances) -> None:
        self._known = tuple((value, forms_of(value)) for value in known)
        self._allowances = allowances

    def suspicions(self, path: str, data: bytes) -> Iterator[Suspicion]:
        """Yields what a file, or as `data` a name, holds, also packed: each value once.

        Raises:
            TooMuchPackedError: it packs more than is looked at, and is not allowed to hold what looks like a secret.
        """
        seen = set[tuple[str, ...]]()
        for content in self._contents(path, data):
            for one in self._suspicions(path, content):
                if one.lines not in seen:
                    seen.add(one.lines)
                    yield one

    def _contents(self, path: str, data: bytes) -> Iterator[bytes]:
        yield data
        try:
            yield from unpacked(data)
        except TooMuchPackedError:
            if not self._allowances.allows_everything(path):
                raise

    def _suspicions(self, path: str, data: bytes) -> Iterator[Suspicion]:
        yield from self._own(path, data)
        if self._allowances.allows_everything(path):
            return
        text = text_in(data)
        for finding in find(text):
            if not self._allowances.allows(path, finding.rule):
                yield Suspicion(path, finding.kind, finding.rule, _lines(text[finding.start : finding.end]))

    def _own(self, path: str, data: bytes) -> Iterator[Suspicion]:
        pressed = squeezed(data) if self._known else b""
        for value, forms in self._known:
            if any(form in pressed for form in forms):
                yield Suspicion(path, SecretKind.OWN, "", _lines(value))


def _lines(value: str) -> tuple[str, ...]:
    found = [line.strip() for line in value.splitlines()]
    return tuple(line for line in found if line)[:_LONGEST_LINE]
