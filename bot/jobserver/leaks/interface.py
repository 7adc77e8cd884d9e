"""What the executor needs: a scan before each push, and the masking of texts."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Leak:
    """A file, or a name, that holds a secret. `what` is its kind in words; nothing here holds the value.

    `rule` is empty where it is a value of this server's own, which nobody can allow.
    """

    path: str
    what: str
    rule: str = ""


@dataclass(frozen=True)
class Trees:
    """What was there before: the tree that was changed and the base; and the commit that was made of it."""

    start: str
    base: str
    commit: str


class LeakScan(Protocol):
    """Looks through changes."""

    async def leaks(self, trees: Trees) -> tuple[Leak, ...]:
        """Returns what a commit would give away that was nowhere before, some at most.

        Raises:
            LeakScanError: it cannot be looked through; nothing is known of it.
        """
        ...


class Masking(Protocol):
    """Takes secrets out of texts that leave the server. Blocks: for prompts and answers, not for whole files."""

    def known(self, text: str) -> str:
        """Returns the text without values that this server knows."""
        ...

    def all(self, text: str) -> str:
        """Returns the text without these, and without what looks like a secret."""
        ...
