"""The small ports of the store for whoever runs Pagehand: when something happened last, and faults of the set-up."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.findings import Finding
from bot.domain.last_times import LastTime


class LastTimes(Protocol):
    """When something happened last."""

    async def note(self, kinds: Collection[LastTime]) -> None:
        """Notes that these happened now."""


@dataclass(frozen=True)
class ClaimedFault:
    """A fault that is to be told. `found_at` is when it was first seen, `attempts` counts this one."""

    key: str
    words: str
    found_at: float
    attempts: int


class Faults(Protocol):
    """Faults of the set-up that the checks found, each by the name of its check.

    A fault is told once, and again if it comes back on another day after it was fixed.
    """

    async def record(self, findings: Sequence[Finding], *, tell: bool) -> None:
        """Records what a look found. A finding that is well clears the faults by its name, and by names with one
        part more. A fault that is new since the first look is due to be told if `tell` says so: what that look found is
        known to whoever set Pagehand up.
        """

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedFault]:
        """Claims faults that are due to be told."""

    async def settled(self, key: str, owner: str) -> None:
        """Nothing is left to tell of a fault that the owner holds."""

    async def postpone(self, key: str, owner: str, *, due_in: float) -> None:
        """Has it tried again in so many seconds."""
