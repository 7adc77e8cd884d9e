"""The interfaces that the pipeline uses: a scan before each push, and the masking of texts."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Leak:
    """A file whose contents or name contain a secret; the secret itself is not included. `what` is its kind in words.

    `rule` is empty for a secret of this server's own, which cannot be allowed.
    """

    path: str
    what: str
    rule: str = ""


@dataclass(frozen=True)
class Trees:
    """A change to scan: the tree that the editor started from, the base branch, and the commit of the change."""

    start: str
    base: str
    commit: str


class LeakScan(Protocol):
    """Scans changes for secrets."""

    async def leaks(self, trees: Trees) -> tuple[Leak, ...]:
        """Returns secrets in a commit that were not in the repository before; the first of them if there are many.

        Raises:
            LeakScanError: the scan failed, so the commit may contain secrets.
        """
        ...


class Masking(Protocol):
    """Removes secrets from texts that leave the server, or withholds a text in which one is disguised.

    Blocks; meant for prompts and answers, not for whole files.
    """

    def known(self, text: str) -> str:
        """Returns the text without this server's own secrets."""
        ...

    def all(self, text: str) -> str:
        """Returns the text without these and without anything that looks like a secret."""
        ...
