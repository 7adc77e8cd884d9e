"""What was found in a text."""

from collections.abc import Iterator
from dataclasses import dataclass

from bot.runtime.secrets.kinds import SecretKind


@dataclass(frozen=True)
class Finding:
    """A secret in a text: where it stands, what it is, and which rule found it."""

    start: int
    end: int
    kind: SecretKind
    rule: str


def occurrences(text: str, wanted: str) -> Iterator[int]:
    """Yields where a word stands in a text."""
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)
