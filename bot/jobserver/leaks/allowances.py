"""What whoever runs the server allows to be pushed, though it looks like a secret. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.jobserver.repository.allowed_paths import matches


@dataclass(frozen=True)
class Allowances:
    """Patterns of paths, each alone or with a colon and the one rule that does not hold there."""

    entries: tuple[str, ...] = ()

    def allows(self, path: str, rule: str) -> bool:
        return any(matches(pattern, path) for pattern, only in map(_parted, self.entries) if only in {"", rule})

    def allows_everything(self, path: str) -> bool:
        """Whether no rule holds there, so that it has not to be looked through by any."""
        return any(not only and matches(pattern, path) for pattern, only in map(_parted, self.entries))


def _parted(entry: str) -> Sequence[str]:
    pattern, _, rule = entry.partition(":")
    return pattern, rule
